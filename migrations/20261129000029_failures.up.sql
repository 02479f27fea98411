-- The page of failures groups the newest 10,000 and counts each group whole,
-- up to as many. With these columns in the indexes it reads no rows for that:
-- at 80,000 failures it read 8,000 blocks for the groups, and more for each.
--
-- Not one transaction: each new index is built beside the old one, which keeps
-- answering until then. Nobody waits for more than a moment, to read or to
-- write. Each build reads items twice and waits for transactions that are older
-- than it, such as a dump: minutes for tens of millions of items. Where it was
-- broken off it begins anew.
DROP INDEX CONCURRENTLY IF EXISTS items_failed_new_idx;
--bun:split
CREATE INDEX CONCURRENTLY items_failed_new_idx ON items (ended_at DESC, id DESC) INCLUDE (failure_group) WHERE state = 'failed';
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_failed_idx;
--bun:split
ALTER INDEX items_failed_new_idx RENAME TO items_failed_idx;
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_waiting_new_idx;
--bun:split
CREATE INDEX CONCURRENTLY items_waiting_new_idx ON items (ended_at DESC, id DESC) INCLUDE (failure_group) WHERE state = 'failed' AND resolved_at IS NULL;
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_waiting_idx;
--bun:split
ALTER INDEX items_waiting_new_idx RENAME TO items_waiting_idx;
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_failed_group_new_idx;
--bun:split
CREATE INDEX CONCURRENTLY items_failed_group_new_idx ON items (failure_group, ended_at DESC, id DESC) INCLUDE (resolved_at) WHERE state = 'failed';
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_failed_group_idx;
--bun:split
ALTER INDEX items_failed_group_new_idx RENAME TO items_failed_group_idx;
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_failed_code_new_idx;
--bun:split
CREATE INDEX CONCURRENTLY items_failed_code_new_idx ON items (error_code, ended_at DESC, id DESC) INCLUDE (resolved_at) WHERE state = 'failed';
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_failed_code_idx;
--bun:split
ALTER INDEX items_failed_code_new_idx RENAME TO items_failed_code_idx;
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_failed_host_new_idx;
--bun:split
CREATE INDEX CONCURRENTLY items_failed_host_new_idx ON items (host, ended_at DESC, id DESC) INCLUDE (resolved_at) WHERE state = 'failed';
--bun:split
DROP INDEX CONCURRENTLY IF EXISTS items_failed_host_idx;
--bun:split
ALTER INDEX items_failed_host_new_idx RENAME TO items_failed_host_idx;
