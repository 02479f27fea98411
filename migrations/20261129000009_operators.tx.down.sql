DROP TABLE audit_log;
DROP FUNCTION audit_log_is_written_once();
DROP INDEX deliveries_secret_idx;
DROP INDEX deliveries_undiagnosed_idx;
ALTER TABLE deliveries DROP COLUMN secret_lost;
ALTER TABLE deliveries DROP COLUMN diagnosed_at;
ALTER TABLE deliveries DROP COLUMN diagnosis;
ALTER TABLE deliveries DROP COLUMN recovered_at;
DROP TABLE rotations;
ALTER TABLE webhooks DROP COLUMN adopted;
UPDATE webhooks SET state = 'inactive' WHERE state = 'paused';
ALTER TABLE webhooks DROP CONSTRAINT webhooks_state_check;
ALTER TABLE webhooks ADD CONSTRAINT webhooks_state_check CHECK (state IN
    ('registering', 'live', 'rotating', 'secret_unknown', 'inactive', 'moved', 'gone', 'removed'));
