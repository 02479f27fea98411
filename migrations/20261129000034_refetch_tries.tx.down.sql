ALTER TABLE replay_jobs DROP COLUMN refetch_tries;
