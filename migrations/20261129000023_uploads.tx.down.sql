-- The release before can't read what is packed: its time is over, and the next
-- sweep removes it. Nothing was submitted of it.
UPDATE preflights SET expires_at = created_at WHERE packed AND batch_id IS NULL;

ALTER TABLE preflights DROP COLUMN packed;
