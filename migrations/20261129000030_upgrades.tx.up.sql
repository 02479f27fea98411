-- Nobody waits for more than a moment: two small tables get a column, and an
-- index goes that earlier states of migration 25 made.
--
-- Up to which item it is noted which words stand beside each other: the walk
-- goes from the newest to the oldest, and is over when this is NULL. Kept here
-- and not told by an index on what is missing: with that one, each signature
-- that is written would be written to all indexes of its row, the words too.
ALTER TABLE search_backfill ADD COLUMN near_below bigint;
UPDATE search_backfill SET near_below = 9223372036854775807 WHERE EXISTS (SELECT FROM search_words);
DROP INDEX IF EXISTS search_words_far_idx;

-- Jobs that a replay names and whose batch was removed, but for its counts.
ALTER TABLE replays ADD COLUMN pruned_jobs bigint NOT NULL DEFAULT 0;
