DROP INDEX jobs_due_others_idx;
DROP TABLE mode_changes, list_sweeps;
