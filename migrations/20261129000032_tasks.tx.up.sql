-- River keeps two GIN indexes on its tasks, for lists filtered by argument or metadata, which nothing here asks for. They
-- were a third of what a delivery with its task writes. What does look tasks up, by the job they are about, has a small
-- index of the unended instead. DROP waits for those who hold tasks and keeps others waiting for as long: no longer than
-- the timeout, and then the migration fails whole and is run again.
SET LOCAL lock_timeout = '5s';
--bun:split
DROP INDEX IF EXISTS river_job_args_index;
--bun:split
DROP INDEX IF EXISTS river_job_metadata_index;
--bun:split
CREATE INDEX river_job_about_idx ON river_job (((args ->> 'job_id')::bigint)) WHERE finalized_at IS NULL;
