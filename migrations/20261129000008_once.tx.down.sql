DROP INDEX batches_submit_token_key;
ALTER TABLE batches DROP COLUMN submit_token;
