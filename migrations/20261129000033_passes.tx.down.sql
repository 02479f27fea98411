ALTER TABLE jobs DROP COLUMN settle_pass_vendor_at;
