DROP INDEX deliveries_vendor_delivery_idx;
DROP INDEX deliveries_status_idx;
DROP INDEX deliveries_event_idx;
DROP INDEX deliveries_webhook_idx;
DROP TABLE delivery_log_reads;
DROP TABLE delivery_log;
