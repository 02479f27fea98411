DROP TABLE schema_release, settings, sign_in_delays, sessions, users;
