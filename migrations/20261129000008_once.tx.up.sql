-- A form carries a token of its own, so that sending it twice, by a double
-- click or a reload, makes one batch.
ALTER TABLE batches ADD COLUMN submit_token text CHECK (char_length(submit_token) BETWEEN 1 AND 64);
CREATE UNIQUE INDEX batches_submit_token_key ON batches (submit_token) WHERE submit_token IS NOT NULL;
