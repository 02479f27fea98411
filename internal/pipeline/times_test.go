package pipeline_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rollcall/internal/pipeline"
)

// TestTimesAcrossTheChangeOfTheClock: what the clock skips comes as it has
// jumped, once; what it shows twice runs the first time; what runs every hour
// misses none.
func TestTimesAcrossTheChangeOfTheClock(t *testing.T) {
	t.Parallel()
	const berlin = "Europe/Berlin"
	for _, each := range []struct {
		name, cron, zone, from string
		want                   string // In the zone.
	}{
		{"skipped", "30 2 * * *", berlin, "2026-03-28 12:00", "03-29 03:00 CEST, 03-30 02:30 CEST"},
		{"skipped at its beginning", "0 2 * * *", berlin, "2026-03-28 12:00", "03-29 03:00 CEST, 03-30 02:00 CEST"},
		{"just after what is skipped", "0 3 * * *", berlin, "2026-03-28 12:00", "03-29 03:00 CEST, 03-30 03:00 CEST"},
		{"skipped and not skipped", "0,30 2,3 * * *", berlin, "2026-03-29 00:00", "03-29 03:00 CEST, 03-29 03:30 CEST, 03-30 02:00 CEST"},
		{"every hour in spring", "15 * * * *", berlin, "2026-03-29 00:30", "03-29 01:15 CET, 03-29 03:15 CEST, 03-29 04:15 CEST"},
		{"twice", "30 2 * * *", berlin, "2026-10-24 12:00", "10-25 02:30 CEST, 10-26 02:30 CET"},
		{"twice at its beginning", "0 2 * * *", berlin, "2026-10-24 12:00", "10-25 02:00 CEST, 10-26 02:00 CET"},
		{"just after what comes twice", "0 3 * * *", berlin, "2026-10-24 12:00", "10-25 03:00 CET, 10-26 03:00 CET"},
		{"every other hour in autumn", "0 */2 * * *", berlin, "2026-10-25 00:30", "10-25 02:00 CEST, 10-25 04:00 CET, 10-25 06:00 CET"},
		{"every hour in autumn", "15 * * * *", berlin, "2026-10-25 01:30", "10-25 02:15 CEST, 10-25 02:15 CET, 10-25 03:15 CET"},
		{"midnight that isn't", "0 0 * * *", "Africa/Cairo", "2026-04-23 12:00", "04-24 01:00 EEST, 04-25 00:00 EEST"},
		{"half an hour skipped", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "10-04 02:30 +11, 10-05 02:15 +11"},
		{"half an hour twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", "04-05 01:45 +11, 04-06 01:45 +1030"},
		{"a day that isn't", "0 9 * * *", "Pacific/Apia", "2011-12-29 08:00", "12-29 09:00 -10, 12-31 00:00 +14, 12-31 09:00 +14"},
		{"weekly", "30 9 * * 1,4", berlin, "2026-11-29 12:00", "11-30 09:30 CET, 12-03 09:30 CET, 12-07 09:30 CET"},
		{"either day", "0 0 13 * FRI", "UTC", "2026-11-28 00:00", "12-04 00:00 UTC, 12-11 00:00 UTC, 12-13 00:00 UTC"},
		{"leap days", "0 0 29 2 *", "America/New_York", "2026-11-28 00:00", "02-29 00:00 EST, 02-29 00:00 EST"},
	} {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(each.zone)
			if err != nil {
				t.Fatal(err)
			}
			from, err := time.ParseInLocation("2006-01-02 15:04", each.from, zone)
			if err != nil {
				t.Fatal(err)
			}
			times, err := pipeline.ReadTimes(each.cron, each.zone)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, at := range times.Following(from, 1+strings.Count(each.want, ",")) {
				got = append(got, at.In(zone).Format("01-02 15:04 MST"))
			}
			if got := strings.Join(got, ", "); got != each.want {
				t.Errorf("%s in %s:\n got %s\nwant %s", each.cron, each.zone, got, each.want)
			}
		})
	}
}

// TestTimesFollowEachOther: whatever the expression, the zone and the moment, the
// next time is after it, is the next for every moment between, and shows on the
// clock what was asked for unless the clock has just jumped.
func TestTimesFollowEachOther(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago"}
	rapid.Check(t, func(t *rapid.T) {
		minute, hour := rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 23).Draw(t, "hour")
		name := rapid.SampledFrom(zones).Draw(t, "zone")
		times, err := pipeline.ReadTimes(time.Date(2000, 1, 1, hour, minute, 0, 0, time.UTC).Format("4 15 * * *"), name)
		if err != nil {
			t.Fatal(err)
		}
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "from"), 0)
		for range 400 {
			next := times.Next(at)
			gap := next.Sub(at)
			if gap <= 0 || gap > 26*time.Hour {
				t.Fatalf("after %s comes %s", at.In(zone), next.In(zone))
			}
			if between := times.Next(at.Add(gap / 2)); !between.Equal(next) {
				t.Fatalf("after %s comes %s, and after the middle of that %s", at.In(zone), next.In(zone), between.In(zone))
			}
			shown := next.In(zone)
			start, _ := shown.ZoneBounds()
			if (shown.Hour() != hour || shown.Minute() != minute) && !next.Equal(start) {
				t.Fatalf("%02d:%02d runs at %s", hour, minute, shown)
			}
			at = next
		}
	})
}

// TestTimesThatCannotBe: each says which field is wrong, and why.
func TestTimesThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, each := range []struct{ cron, zone, field, says string }{
		{"", "UTC", "cron", "this has 0"},
		{"0 0 * *", "UTC", "cron", "this has 4"},
		{"@daily", "UTC", "cron", "this has 1"},
		{"0 0 0 * * *", "UTC", "cron", "this has 6"},
		{"TZ=UTC 0 * * *", "UTC", "cron", `the minute cannot be "TZ=UTC"`},
		{"0 25 * * *", "UTC", "cron", `the hour cannot be "25": give 0 to 23`},
		{"0 0 * JANUARY *", "UTC", "cron", `the month cannot be "JANUARY"`},
		{"0 0 L * *", "UTC", "cron", `the day of the month cannot be "L"`},
		{"0 0 30 2 *", "UTC", "cron", "no day is ever like that"},
		{"0\x00 0 * * *", "UTC", "cron", `the minute cannot be`},
		{"*/0 0 * * *", "UTC", "cron", `the minute cannot be "*/0"`},
		{strings.Repeat("1,", 200) + "1 0 * * *", "UTC", "cron", "over 200 bytes"},
		{"0 0 * * *", "", "zone", "choose a time zone"},
		{"0 0 * * *", "Local", "zone", `no time zone is called "Local"`},
		{"0 0 * * *", "../../etc/passwd", "zone", "no time zone is called"},
		{"0 0 * * *", "Europe/Bielefeld", "zone", "no time zone is called"},
	} {
		_, err := pipeline.ReadTimes(each.cron, each.zone)
		invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err)
		if !ok || len(invalid.Fields) != 1 || invalid.Fields[0].Field != each.field || !strings.Contains(invalid.Fields[0].Message, each.says) {
			t.Errorf("%q in %q: got %v, want %s to say %q", each.cron, each.zone, err, each.field, each.says)
		}
	}
}
