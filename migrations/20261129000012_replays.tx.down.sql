ALTER TABLE jobs DROP COLUMN look;
DROP TABLE replay_differences, replay_deliveries, replay_jobs, replays;
