DROP TRIGGER audit_log_is_not_emptied ON audit_log;
DROP INDEX audit_log_on_idx;
DROP INDEX audit_log_kind_idx;
DROP INDEX sessions_id_key;
ALTER TABLE sessions DROP COLUMN id;
DROP TABLE invites;
