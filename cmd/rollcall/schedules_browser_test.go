package main

import "strings"

// runsAgain runs the batch shown again, and then has the new one run by the clock: every week, seen on the way, and at
// once by a press.
func (b *chrome) runsAgain(name string) {
	b.t.Helper()
	fromMenu := func(to string) {
		b.click("#batch-menu summary")
		b.click("#batch-menu a[href*='" + to + "']")
	}
	fromMenu("/rerun")
	b.until("[data-testid=plan]", `(?s)2 URLs are asked for again.*Up to 2 requests, in 1 job`)
	b.check("rerun")
	b.click("[data-testid=plan] [type=submit]")
	b.until("h1", `\(again\)`)
	b.until("[data-testid=rerun-of]", "Runs "+name+" again")
	b.until("#roll-call", `(?s)\b0\s+Outstanding`)

	fromMenu("/schedules/new")
	b.until("#next-runs", "Every day at 06:00")
	// The runs follow what is picked, in the schedule's zone.
	for _, step := range []struct{ click, fill, value, shows string }{
		{click: "[name=pick][value=weekly]", shows: "Every Monday at 06:00"},
		{click: "[name=day][value='4']", shows: "Every Monday and Thursday at 06:00"},
		{fill: "#time", value: "21:45", shows: "Every Monday and Thursday at 21:45"},
		{fill: "#zone", value: "Asia/Nowhere", shows: `No time zone is called "Asia/Nowhere"`},
	} {
		if step.click != "" {
			b.click(step.click)
		} else {
			b.fill(step.fill, step.value)
		}
		b.until("#next-runs", step.shows)
	}
	// What was wrong when it was sent is taken back as soon as the runs are good.
	b.click("main form [type=submit]:not([name])")
	b.until("#error-summary", "Time zone: No time zone is called")
	b.fill("#zone", "Asia/Kathmandu")
	b.until("#next-runs", `(?s)(Mon|Thu) .*, 21:45 \+0545.*Your time`)
	if left := b.value(`document.querySelectorAll("#error-summary, .field-error, .is-invalid, [aria-invalid]").length + ""`); left != "0" {
		b.t.Errorf("%s marks of the mistake are left", left)
	}
	if n := strings.Count(b.text("#next-runs"), "21:45 +0545"); n != 5 {
		b.t.Errorf("%d runs are shown, want 5: %s", n, b.text("#next-runs"))
	}
	b.check("schedule-form")
	b.fill("#name", "Twice a week")
	b.click("main form [type=submit]:not([name])")
	b.until("h1", "Twice a week")
	b.until("[data-testid=when]", "Every Monday and Thursday at 21:45, Asia/Kathmandu")

	b.click("main a[href$='/run']")
	b.until("[data-testid=plan]", `(?s)2 URLs are asked for again.*Up to 2 requests, in 1 job.*in the account|requests are left is unknown`)
	b.check("schedule-run")
	b.click("form[action$='/run'] button")
	b.until(".note", "Started: batch")
	b.until("[data-testid=runs]", `(?s)run now by alice.*Started.*Twice a week 20`)
	b.check("schedule")
	b.click("[data-testid=runs] tbody a")
	b.until("[data-testid=rerun-by]", "Started by the schedule Twice a week")
	b.until("#roll-call", `(?s)\b0\s+Outstanding`)
}
