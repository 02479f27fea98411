DROP TABLE reconcile_runs, gates, processed_events, deliveries, webhook_secrets, webhooks;
