DROP INDEX jobs_batch_open_idx;
DROP TABLE batch_pace;
DROP INDEX items_failed_batch_group_idx;
DROP INDEX items_failed_group_idx;
DROP INDEX items_resolved_idx;
DROP INDEX items_waiting_batch_idx;
DROP INDEX items_waiting_idx;
