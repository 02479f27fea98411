DROP INDEX jobs_batch_untaken_idx;
