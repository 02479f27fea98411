DROP INDEX items_failed_host_idx;
DROP INDEX items_failed_batch_idx;
