-- How often the vendor was asked in vain for a page of a settled job: a fetch that waits for its turn is no try. The column
-- takes a moment; who reads or writes a replay's jobs waits for it.
ALTER TABLE replay_jobs ADD COLUMN refetch_tries integer NOT NULL DEFAULT 0;
