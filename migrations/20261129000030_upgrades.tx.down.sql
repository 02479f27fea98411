ALTER TABLE replays DROP COLUMN pruned_jobs;
ALTER TABLE search_backfill DROP COLUMN near_below;
