DROP TABLE vendor_clock;
