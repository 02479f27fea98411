ALTER TABLE reconcile_runs DROP COLUMN refused, DROP COLUMN held;
