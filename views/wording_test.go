package views_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"rollcall/views"
)

// TestOneIsNotMany: no story says "these 1" or "1 jobs".
func TestOneIsNotMany(t *testing.T) {
	t.Parallel()
	many := regexp.MustCompile(`these 1[^0-9,.]|(^|[^0-9,.:/-])1 (jobs|errors|URLs|failures|items|lines|results|requests|calls|days|batches|files|deliveries|pages)\b`)
	files, err := filepath.Glob("testdata/*.html")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d stories, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := many.Find(text); found != nil {
			t.Errorf("%s says %q", file, found)
		}
	}
}

// TestPaceHasItsUnits: whatever is foretold names the unit of each bound that
// stands by itself.
func TestPaceHasItsUnits(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]views.Pace{
		"about 30 s, at least 10 s":     {About: 30 * time.Second, Soon: 10 * time.Second},
		"about 5 s, or longer":          {About: 1200 * time.Millisecond, Soon: 700 * time.Millisecond},
		"about 3 h, at least 2 h":       {About: 3 * time.Hour, Soon: 2 * time.Hour},
		"about 12 min, 8 to 20":         {About: 12 * time.Minute, Soon: 8 * time.Minute, Late: 20 * time.Minute},
		"about 4 days, at least 3 days": {About: 96 * time.Hour, Soon: 72 * time.Hour},
	} {
		p.Open, p.PerMinute, p.Over = true, 1, time.Minute
		if got := render(t, views.BatchRoll(views.BatchRollProps{ID: "1", Pace: p})); !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(got) {
			t.Errorf("want %q in %s", want, got)
		}
	}
}
