package views_test

import (
	"time"

	"rollcall/views"
)

func overviewStories() []story {
	busy := overviewProps(views.RoleOperator)
	busy.Disk = &views.DiskUse{
		At: before(12 * time.Minute), Total: views.Known(48_200_000_000), Growth: views.Known(412_000_000), Limit: views.Known(100_000_000_000), Days: views.Known(125),
		Parts: []views.DiskRow{
			{Name: "Results", Bytes: views.Known(31_400_000_000), Growth: views.Known(290_000_000)},
			{Name: "Search index", Bytes: views.Known(9_800_000_000), Growth: views.Known(88_000_000)},
			{Name: "Batches, items, jobs", Bytes: views.Known(5_100_000_000), Growth: views.Known(36_000_000)},
			{Name: "Deliveries and events", Bytes: views.Known(1_800_000_000), Growth: views.Known(-2_000_000)},
			{Name: "Exports", Bytes: views.Known(40_960), Growth: views.Known(0)},
			{Name: "Everything else", About: "Postgres's own tables, the task queue, users, audit and statistics", Bytes: views.Known(60_000_000), Growth: views.Known(140_000)},
		},
	}
	troubled := overviewProps(views.RoleOperator)
	troubled.Disk = &views.DiskUse{}
	troubled.Layout.Alerts = []views.Alert{{
		Level: "danger", Title: "Dispatch is paused", Resume: true,
		Text: "The vendor answered 402: the plan's tokens are used up. Nothing new is sent until somebody resumes.",
	}}
	troubled.System.Alarm, troubled.System.AlarmAt = "the vendor refuses or does not know more than a fifth of the jobs it is asked about; none is failed for that", before(9*time.Second)
	troubled.System.Paused, troubled.System.PausedReason = true, "402 from the vendor"
	troubled.System.Submit = views.GateState{Closed: true, Until: now().Add(90 * time.Second)}
	troubled.System.Effective, troubled.System.ModeSince = "poll", before(3*time.Minute)
	troubled.System.ModeReason = "the webhook for batch_completed was switched off"
	troubled.Webhooks[0].Refused = views.Known(85)
	troubled.Webhooks[1].State, troubled.Webhooks[1].Refused = "inactive", views.Known(1)
	troubled.Webhooks[2].State = "secret_unknown"
	troubled.Running, troubled.Live, troubled.System.FaultyRuns = nil, false, 3
	troubled.Verdict = views.Verdict{Level: views.VerdictBad, Rolled: before(20 * time.Second), Troubles: []views.Trouble{
		{At: before(11 * time.Minute), Text: "Dispatch is paused: the vendor says the account has no credit left (402)"},
		{Text: "Alarm: the vendor refuses or does not know more than a fifth of the jobs it is asked about; none is failed for that"},
		{At: before(3 * time.Minute), Text: "Webhooks aren't relied on: the webhook for batch_completed was switched off"},
	}}
	troubled.Score.Hooked, troubled.Score.AheadKnown = true, false
	troubled.Spending.Calls, troubled.Spending.Total, troubled.Spending.Asking, troubled.Spending.Jobs = nil, views.Count{}, views.Count{}, views.Count{}
	paused := troubled
	paused.Disk = nil
	paused.Layout.User = &views.User{Name: "alice", Role: views.RoleAnalyst}
	fresh := views.OverviewProps{
		Layout:  layout("Overview", views.SectionOverview, views.RoleAnalyst),
		System:  views.SystemState{Mode: "poll", Queue: views.Known(0), Open: views.Known(0)},
		Verdict: views.Verdict{Level: views.VerdictNew}, Charts: views.Charts{Span: views.SpanDay},
		Score:    views.Scorecard{Days: 7},
		Spending: views.Spending{Days: 7, Quota: views.Quota{Why: "the vendor has not been asked yet"}},
	}
	fresh.Layout.Scripts = busy.Layout.Scripts
	month := overviewProps(views.RoleAnalyst)
	month.Charts = charts(views.SpanMonth)
	month.Layout.Zone, month.Charts.Zone = "Asia/Kolkata", "Asia/Kolkata"
	month.Charts.Note = "Hours are UTC's, so a day here goes from 00:30 to 00:30."
	month.Verdict = views.Verdict{Level: views.VerdictWell, Since: before(40 * 24 * time.Hour)}
	month.Spending.Asking, month.Spending.Own, month.Spending.Jobs = views.Known(318), views.Known(9), views.Known(4)
	month.Spending.EachSecond, month.Spending.Backoff = views.Known(21), views.Known(11)
	month.Spending.Watch = views.Watch{Every: 2 * time.Second, Usual: 10 * time.Minute, Jobs: 44, Run: 30 * time.Second}
	month.Spending.Quota = views.Quota{Known: true, Remaining: views.Known(0), Week: views.Known(9)}
	return []story{
		{"overview", views.Overview(busy)},
		{"overview-trouble", views.Overview(troubled)},
		{"overview-trouble-analyst", views.Overview(paused)},
		{"overview-fresh", views.Overview(fresh)},
		{"overview-month", views.Overview(month)},
	}
}

func overviewProps(role string) views.OverviewProps {
	total := together(days())
	l := layout("Overview", views.SectionOverview, role)
	l.Scripts = []string{"uplot.min.js", "charts.js"}
	return views.OverviewProps{
		Layout: l, Live: true, Charts: charts(views.SpanDay), Score: score(), Spending: spending(), Happened: happened(),
		Verdict: views.Verdict{
			Level: views.VerdictWell, Rolled: before(20 * time.Second), Since: before(26 * time.Hour),
			Last: &views.Trouble{At: before(26 * time.Hour), Text: "dispatch stood still for 12 min 4 s"},
		},
		Running: batchRows()[:2], Latest: batchRows()[2:], Days: days(), Total: total,
		System: views.SystemState{
			Mode: "auto", Effective: "webhook", ModeSince: before(26 * time.Hour),
			ModeReason: "49 of the last 50 completed jobs had their webhook within 60 s", Queue: views.Known(3), Open: views.Known(6),
		},
		Webhooks: []views.WebhookHealth{
			{ID: "1", Event: "extraction.completed", State: "active", LastDelivery: before(4 * time.Second), OnTime: views.Known(47), OutOf: views.Known(50)},
			{ID: "2", Event: "batch.completed", State: "active", LastDelivery: before(8 * time.Minute), OnTime: views.Known(9), OutOf: views.Known(10)},
			{ID: "3", Event: "crawl.completed", State: "active"},
		},
		Last:     &runs()[0],
		Failures: views.Known(9),
	}
}

// charts are made-up figures: quiet at night, one hour that wasn't counted, and one with nothing in it.
func charts(span string) views.Charts {
	c := views.Charts{Span: span, Rolled: before(20 * time.Second)}
	step, rows := time.Hour, 24
	if span == views.SpanMonth {
		step, rows = 24*time.Hour, 30
	}
	for i := range rows {
		n := int64(40 + (i*37)%90)
		row := statRow(n, time.Duration(2+i%5)*time.Second)
		switch i {
		case 3:
			row = statRow(0, 0)
		case 0:
			row = views.StatRow{}
		}
		row.At = now().Truncate(step).Add(time.Duration(i+1-rows) * step)
		c.Rows = append(c.Rows, row)
	}
	c.Total = statRow(1947, 4*time.Second)
	c.Total.Stored = views.Count{}
	return c
}

func statRow(n int64, took time.Duration) views.StatRow {
	row := views.StatRow{
		Stored: views.Known(n), Charged: views.Known(n), Calls: views.Known(n / 3),
		Nets: views.Nets{Webhook: views.Known(n - n/8 - n/20 - n/40), Poll: views.Known(n / 8), Reconcile: views.Known(n / 20), Replay: views.Known(0), Sync: views.Known(n / 40)},
	}
	if took > 0 {
		row.SubmitP50, row.SubmitP95 = views.StatTime{D: 9 * took, Known: true}, views.StatTime{D: 70 * took, Known: true}
		row.VendorP50, row.VendorP95 = views.StatTime{D: took / 4, Known: true}, views.StatTime{D: 3 * took, Known: true}
	}
	return row
}

func score() views.Scorecard {
	return views.Scorecard{
		Days: 7, Hooked: true, Expected: views.Known(1204), InTime: views.Known(1187), NoHook: views.Known(31),
		Repaired:   views.Nets{Poll: views.Known(14), Reconcile: views.Known(3), Replay: views.Known(0)},
		Deliveries: views.Known(1201), Duplicates: views.Known(1), Refused: views.Known(85), Ahead: 42 * time.Second, AheadKnown: true,
		Rolled: before(20 * time.Second),
	}
}

func spending() views.Spending {
	return views.Spending{
		Days: 7, Rolled: before(20 * time.Second), Charged: views.Known(8120), Total: views.Known(2904), Since: before(5 * 24 * time.Hour),
		Calls:  []views.CallRow{{Kind: "submit", Calls: views.Known(1240)}, {Kind: "status", Calls: views.Known(1206)}, {Kind: "list", Calls: views.Known(458)}},
		Asking: views.Known(1664), Own: views.Known(1206), Jobs: views.Known(1235), EachSecond: views.Known(61440), Backoff: views.Known(7512),
		Quota: views.Quota{
			Known: true, Remaining: views.Known(41_880), Limit: views.Known(50_000), At: before(time.Minute), Week: views.Known(8120),
			Until: now().Add(36 * 24 * time.Hour),
		},
	}
}

func happened() []views.HappenedRow {
	return []views.HappenedRow{
		{At: before(3 * time.Minute), Icon: "stack-2", Text: "News front pages ended: 3 of 40 stored", Path: "/batches/11"},
		{At: before(31 * time.Minute), Icon: "list-check", Text: "Reconcile found 3 jobs that nobody had told of", Path: "/reconcile"},
		{At: before(26 * time.Hour), Icon: "player-play", Text: "After 12 min 4 s dispatch goes on"},
		{At: before(50 * time.Hour), Icon: "stack-2", Text: hostile + " ended: 0 of 7 stored", Path: "/batches/8"},
		{At: before(70 * time.Hour), Icon: "key", Text: "The secret of batch_completed was changed"},
	}
}
