DROP INDEX items_failed_idx, items_waiting_idx, items_failed_group_idx, items_failed_code_idx, items_failed_host_idx;
CREATE INDEX items_failed_idx ON items (ended_at DESC, id DESC) WHERE state = 'failed';
CREATE INDEX items_waiting_idx ON items (ended_at DESC, id DESC) WHERE state = 'failed' AND resolved_at IS NULL;
CREATE INDEX items_failed_group_idx ON items (failure_group, ended_at DESC, id DESC) WHERE state = 'failed';
CREATE INDEX items_failed_code_idx ON items (error_code, ended_at DESC, id DESC) WHERE state = 'failed';
CREATE INDEX items_failed_host_idx ON items (host, ended_at DESC, id DESC) WHERE state = 'failed';
