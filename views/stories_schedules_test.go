package views_test

import (
	"time"

	"rollcall/views"
)

// nextRuns are the next runs as the schedule's clock in Berlin and the reader's
// show them.
func nextRuns() views.NextRuns {
	next := views.NextRuns{When: "Every Monday and Thursday at 06:30", Zone: "Europe/Berlin"}
	for _, day := range []int{1, 4, 8, 11, 15} {
		at := now().Add(time.Duration(day) * 24 * time.Hour)
		next.Times = append(next.Times, views.NextRun{At: at.In(time.FixedZone("CET", 3600))})
	}
	return next
}

func rerunStories() []story {
	all := views.RerunProps{
		Layout:  layout("Run again", views.SectionBatches, views.RoleAnalyst),
		BatchID: "12", BatchName: "Product pages, November", Which: "all", All: views.Known(12480), Failures: views.Known(37), URLs: views.Known(12480),
		Jobs: views.Known(13), Requests: views.Known(12480), Resolved: views.Known(0), Outstanding: views.Known(9),
		Account: views.AccountLeft{Left: views.Known(48_210), At: before(2 * time.Minute)},
		Name:    "Product pages, November (again)", Once: "once-1",
	}
	failures := all
	failures.Which, failures.URLs, failures.Jobs, failures.Requests = "failures", views.Known(37), views.Known(1), views.Known(37)
	failures.Resolved, failures.Outstanding, failures.Name, failures.BatchName = views.Known(4), views.Known(0), hostile, hostile
	failures.Errors = views.Errors{"name": "The name is over 200 characters."}
	pruned := all
	pruned.PrunedAt = before(40 * 24 * time.Hour)
	none := failures
	none.URLs, none.Failures, none.Errors = views.Known(0), views.Known(0), nil
	crawl := all
	crawl.Whole, crawl.URLs, crawl.Jobs, crawl.Requests, crawl.Outstanding = true, views.Known(1), views.Known(1), views.Known(500), views.Known(0)
	return []story{
		{"rerun", views.Rerun(all)},
		{"rerun-failures", views.Rerun(failures)},
		{"rerun-nothing", views.Rerun(none)},
		{"rerun-crawl", views.Rerun(crawl)},
		{"rerun-pruned", views.Rerun(pruned)},
	}
}

func scheduleStories() []story {
	rows := []views.ScheduleRow{
		{ID: "5", Name: "Prices, twice a week", Batch: views.Kin{ID: "12", Name: "Product pages, November"}, When: "Every Monday and Thursday at 06:30", Zone: "Europe/Berlin", State: "active", Next: now().Add(26 * time.Hour), LastDue: before(46 * time.Hour), LastOutcome: "started", LastBatch: "431", By: "alice"},
		{ID: "4", Name: hostile, Batch: views.Kin{ID: "13", Name: hostile}, When: "*/5 0-6 1,15 * FRI", Zone: "America/Argentina/Buenos_Aires", State: "overdue", Next: before(12 * time.Minute), LastDue: before(3 * time.Hour), LastOutcome: "missed", By: hostile},
		{ID: "3", Name: "Docs, nightly", Batch: views.Kin{ID: "14", Name: "Docs"}, When: "Every day at 02:00", Zone: "UTC", State: "paused", LastDue: before(70 * time.Hour), LastOutcome: "skipped", By: "bob"},
		{ID: "2", Name: "Never ran", Batch: views.Kin{ID: "15", Name: "One"}, When: "0 0 29 2 *", Zone: "UTC", State: "over"},
	}
	list := layout("Schedules", views.SectionSchedules, views.RoleAnalyst)
	form := views.ScheduleFormProps{
		Layout: layout("New schedule", views.SectionSchedules, views.RoleAnalyst), Batch: rows[0].Batch, URLs: views.Known(12480), Name: "Product pages, November",
		Pick: "weekly", Time: "06:30", Days: []string{"1", "4"}, Zone: "Europe/Berlin", Zones: []string{"UTC", "Europe/Berlin"}, Once: "once-1", Next: nextRuns(),
	}
	daily, wrong := form, form
	daily.Pick, daily.ID, daily.Next.When = "daily", "5", "Every day at 06:30"
	wrong.Pick, wrong.Cron, wrong.Zone, wrong.Name = "cron", "0 25 * * "+hostile, hostile, hostile
	wrong.Errors = views.Errors{
		"name": "The name is over 200 characters.", "cron": `The hour cannot be "25": give 0 to 23, as one, a range such as 1-5, a list with commas, or *.`,
		"zone": "No time zone is called " + hostile + "; they are named like Europe/Berlin.",
	}
	wrong.Next = views.NextRuns{Problem: wrong.Errors["cron"]}
	run := views.RunScheduleProps{
		Layout: list, ID: "5", Name: rows[0].Name, Batch: rows[0].Batch, URLs: views.Known(12480), Jobs: views.Known(13), Requests: views.Known(12480),
		Account: views.AccountLeft{Left: views.Known(9000), At: before(time.Minute)},
	}
	skipped, crawl := run, run
	skipped.Going = scheduleProps(rows[0]).Going
	crawl.Name, crawl.Batch, crawl.Whole, crawl.Paused, crawl.URLs, crawl.Jobs, crawl.Requests = hostile, rows[1].Batch, true, true, views.Known(1), views.Known(1), views.Known(500)
	crawl.Account = views.AccountLeft{Why: "the vendor has not been asked yet"}
	return []story{
		{"schedule-run", views.RunSchedule(run)},
		{"schedule-run-skipped", views.RunSchedule(skipped)},
		{"schedule-run-crawl", views.RunSchedule(crawl)},
		{"schedules", views.Schedules(views.SchedulesProps{Layout: list, Rows: rows, Pager: views.Pager{Older: "/schedules?from=abc"}})},
		{"schedules-none", views.Schedules(views.SchedulesProps{Layout: list})},
		{"schedule-new", views.ScheduleForm(form)},
		{"schedule-change", views.ScheduleForm(daily)},
		{"schedule-errors", views.ScheduleForm(wrong)},
		{"schedule", views.Schedule(scheduleProps(rows[0]))},
		{"schedule-overdue", views.Schedule(overdueProps(rows[1]))},
		{"schedule-paused", views.Schedule(pausedProps(rows[2]))},
		{"schedule-remove", views.RemoveSchedule(views.RemoveScheduleProps{Layout: list, ID: "5", Name: rows[0].Name})},
		{"schedule-removed", views.Schedule(removedProps(rows[3]))},
	}
}

func scheduleProps(row views.ScheduleRow) views.ScheduleProps {
	return views.ScheduleProps{
		Layout: layout(row.Name, views.SectionSchedules, views.RoleAnalyst), ScheduleRow: row, Cron: "30 6 * * 1,4", CreatedAt: before(900 * time.Hour), Coming: nextRuns(),
		Going: &views.GoingBatch{Kin: views.Kin{ID: "431", Name: "Prices, twice a week 2026-11-27 06:30"}, Outstanding: views.Known(17), Accepted: views.Known(12480)},
		Runs: []views.ScheduleRun{
			{Due: before(time.Hour), Times: views.Known(1), At: before(time.Hour), Outcome: "skipped", Reason: "Batch 431 was still going: 17 of its 12480 URLs had no answer yet.", PressedBy: "alice"},
			{Due: before(46 * time.Hour), Times: views.Known(1), At: before(46 * time.Hour), Outcome: "started", Batch: &views.Kin{ID: "431", Name: "Prices, twice a week 2026-11-27 06:30"}, Accepted: views.Known(12480), Outstanding: views.Known(17), Failed: views.Known(3)},
			{Due: before(300 * time.Hour), Until: before(100 * time.Hour), Times: views.Known(3), At: before(46 * time.Hour), Outcome: "missed", Reason: "No process of Rollcall took them up in time."},
		},
		Pager: views.Pager{Older: "/schedules/5?from=abc"},
	}
}

func overdueProps(row views.ScheduleRow) views.ScheduleProps {
	p := scheduleProps(row)
	p.Cron, p.Coming.When, p.Going, p.Pager = row.When, row.When, nil, views.Pager{}
	p.Runs = []views.ScheduleRun{{Due: before(3 * time.Hour), Times: views.Known(1), Outcome: "started", PressedBy: hostile, Reason: hostile, Batch: &views.Kin{ID: "9", Name: hostile}}}
	return p
}

func pausedProps(row views.ScheduleRow) views.ScheduleProps {
	p := scheduleProps(row)
	p.PausedAt, p.PausedBy, p.Going, p.Cron = before(50*time.Hour), hostile, nil, "0 2 * * *"
	return p
}

func removedProps(row views.ScheduleRow) views.ScheduleProps {
	row.State = "removed"
	return views.ScheduleProps{Layout: layout(row.Name, views.SectionSchedules, views.RoleAnalyst), ScheduleRow: row, Cron: row.When, CreatedAt: before(time.Hour), RemovedAt: before(time.Minute)}
}
