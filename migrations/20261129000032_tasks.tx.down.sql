DROP INDEX IF EXISTS river_job_about_idx;
--bun:split
CREATE INDEX IF NOT EXISTS river_job_args_index ON river_job USING gin (args);
--bun:split
CREATE INDEX IF NOT EXISTS river_job_metadata_index ON river_job USING gin (metadata);
