-- When the last complete read that left items unreported was, by the vendor's clock: two servers whose own clocks disagree
-- must not take one moment for two that are far apart. The column takes a moment; who reads or writes jobs waits for it.
ALTER TABLE jobs ADD COLUMN settle_pass_vendor_at timestamptz;
