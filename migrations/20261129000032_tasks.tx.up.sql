-- River keeps two GIN indexes on its tasks, for lists filtered by argument or metadata, which nothing here asks for. They
-- were a third of what a delivery with its task writes. What does look tasks up, by the job they are about, has a small
-- index of the unended instead. Whoever makes or ends a task waits for this: as long as it takes to go through an hour's
-- tasks, well under a second for a hundred thousand.
DROP INDEX IF EXISTS river_job_args_index;
--bun:split
DROP INDEX IF EXISTS river_job_metadata_index;
--bun:split
CREATE INDEX river_job_about_idx ON river_job (((args ->> 'job_id')::bigint)) WHERE finalized_at IS NULL;
