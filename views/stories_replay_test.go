package views_test

import (
	"time"

	"rollcall/views"
)

func replayStories() []story {
	picked := `all of the vendor's delivery log with status failed since 2026-11-28 15:00 CET`
	rows := []views.ReplayRow{
		{ID: "12", State: "running", Picked: picked, By: "bob", At: before(3 * time.Minute), Jobs: views.Known(18750), Ended: views.Known(9012), Settled: views.Known(311)},
		{ID: "11", State: "paused", Picked: hostile, By: hostile, At: before(time.Hour), Jobs: views.Known(4), Deliveries: views.Known(2), Ended: views.Known(1), Settled: views.Known(1)},
		{ID: "10", State: "planned", Picked: "1 delivery that was ticked", By: "carol", At: before(26 * time.Hour), Jobs: views.Known(1), Ended: views.Known(0), Settled: views.Known(0)},
		{ID: "9", State: "done", Picked: "3 lines that were ticked", By: "bob", At: before(50 * time.Hour), Jobs: views.Known(3), Ended: views.Known(3), Settled: views.Known(2)},
		{ID: "8", State: "cancelled", Picked: picked, By: "rollcall", At: before(90 * time.Hour), Jobs: views.Known(80), Ended: views.Known(50), Settled: views.Known(50)},
	}
	list := layout("Replays", views.SectionReplays, views.RoleOperator)
	running, done, bare := replayProps("running"), replayProps("done"), replayProps("planned")
	done.Live, done.EndedAt, done.Ended = false, before(time.Second), done.Jobs
	done.List, done.Rows = "failed", done.Rows[3:4]
	bare.Lines, bare.Jobs, bare.Deliveries, bare.SettledBefore = views.Known(2), views.Known(0), views.Known(0), views.Known(0)
	bare.Open, bare.Rows, bare.Unnamed = views.Known(0), nil, views.Known(0)
	refused := bare
	refused.Picked, refused.Address = "all deliveries received with the verdict refused", "/deliveries?verdict=refused"
	refused.Lines, refused.Deliveries, refused.Foreign = views.Known(85), views.Known(85), views.Known(0)
	verified := refused
	verified.State, verified.RunBy, verified.StartedAt, verified.EndedAt = "done", "carol", before(4*time.Minute), before(time.Minute)
	verified.Recovered, verified.Refused = views.Known(1), views.Known(84)
	for i, outcome := range []string{"refused", "cut", "recovered", "already", ""} {
		row := views.ReplayDeliveryRow{ID: []string{"45", "44", "43", "42", "41"}[i], At: before(time.Hour), Outcome: outcome}
		if i < 2 {
			row.Why = []string{"Refused unread", hostile}[i]
		}
		verified.Verified = append(verified.Verified, row)
	}
	return []story{
		{"replay-done-refused", views.Replay(verified)},
		{"replays", views.Replays(views.ReplaysProps{Layout: list, Rows: rows, Pager: views.Pager{Older: "/replays?from=abc"}})},
		{"replays-none", views.Replays(views.ReplaysProps{Layout: list})},
		{"replay-new", views.NewReplay(views.NewReplayProps{
			Layout: list, Back: "/deliveries/log?status=failed", BackText: "Deliveries", Picked: picked + hostile, Once: "once-1",
			Lines: views.Count{N: 10000, Known: true, More: true}, Fields: []views.Option{{Value: "from", Text: "log"}, {Value: "status", Text: "failed"}},
		})},
		{"replay-new-nothing", views.NewReplay(views.NewReplayProps{Layout: list, Back: "/deliveries", BackText: "Deliveries", Nothing: true})},
		{"replay-planned", views.Replay(replayProps("planned"))},
		{"replay-planned-nothing", views.Replay(bare)},
		{"replay-planned-refused", views.Replay(refused)},
		{"replay-running", views.Replay(running)},
		{"replay-paused", views.Replay(replayProps("paused"))},
		{"replay-done", views.Replay(done)},
		{"replay-differences", views.Differences(views.DifferencesProps{Layout: list, ID: "12", Rows: []views.DifferenceRow{
			{ItemID: "71", URL: "https://shop.example/" + hostile, JobID: "31", At: before(time.Minute), Kept: true},
			{ItemID: "72", URL: "https://shop.example/b", JobID: "31", At: before(time.Minute), Kept: true, ReplacedAt: before(time.Second), ReplacedBy: hostile},
			{ItemID: "73", URL: "https://shop.example/c", JobID: "32", At: before(time.Minute)},
		}})},
		{"replay-difference", views.DifferencePage(differenceProps(true))},
		{"replay-difference-replaced", views.DifferencePage(differenceProps(false))},
	}
}

func replayProps(state string) views.ReplayProps {
	p := views.ReplayProps{
		Layout: layout("Replay 12", views.SectionReplays, views.RoleOperator), ID: "12", State: state,
		Picked: "all of the vendor's delivery log with status failed since 2026-11-28 15:00 CET " + hostile, Address: "/deliveries/log?status=failed",
		PlannedBy: "bob", PlannedAt: before(5 * time.Minute), Self: "/replays/12", Refetch: state != "planned",
		Lines: views.Known(43749), Unnamed: views.Known(6250), Foreign: views.Known(6200), Pruned: views.Known(50), Jobs: views.Known(18750), SettledBefore: views.Known(3750),
		Open: views.Known(15000), Calls: views.Known(15374), Takes: 26 * time.Minute, RefetchCalls: views.Known(3812), RefetchTakes: 6 * time.Minute,
		Deliveries: views.Known(7), Ended: views.Known(0), Recovered: views.Known(0), Refused: views.Known(0), Refetched: views.Known(0), Differing: views.Known(0),
	}
	for _, word := range []string{"waiting", "under_way", "already_settled", "settled_now", "still_running", "failed", "unknown_to_vendor", "error"} {
		p.Lists = append(p.Lists, views.ReplayList{Word: word, Count: views.Known(0)})
	}
	p.Lists[0].Count = p.Jobs
	if state == "planned" {
		p.Rows = []views.ReplayJobRow{{JobID: "31", Outcome: "waiting", State: "accepted"}, {JobID: "32", Outcome: "waiting", State: "settled"}}
		return p
	}
	p.RunBy, p.StartedAt, p.Live = "carol", before(4*time.Minute), true
	p.Ended, p.Recovered, p.Refused, p.Refetched, p.Differing = views.Known(9012), views.Known(4), views.Known(2), views.Known(800), views.Known(3)
	for i, n := range []int64{9688, 50, 3000, 5500, 300, 12, 150, 50} {
		p.Lists[i].Count = views.Known(n)
	}
	p.Rows = []views.ReplayJobRow{
		{JobID: "31", Outcome: "already_settled", State: "settled", Refetched: "differs", At: before(time.Minute)},
		{JobID: "32", Outcome: "settled_now", State: "settled", At: before(time.Minute)},
		{JobID: "33", Outcome: "still_running", Detail: "the vendor says processing", State: "accepted", At: before(time.Minute)},
		{JobID: "34", Outcome: "failed", Detail: "GAVE_UP: " + hostile, State: "given_up", At: before(time.Minute)},
		{JobID: "35", Outcome: "unknown_to_vendor", Detail: "the vendor answered 404", State: "accepted", At: before(time.Minute)},
		{JobID: "36", Outcome: "error", Detail: "the vendor could not be read; it is asked again later", State: "accepted", At: before(time.Minute)},
		{JobID: "37", Outcome: "already_settled", State: "settled", Refetched: "same", At: before(time.Minute)},
		{JobID: "38", Outcome: "under_way", State: "accepted", At: before(time.Second)},
		{JobID: "39", Outcome: "waiting", State: "accepted"},
	}
	p.Pager = views.Pager{Older: "/replays/12?from=abc"}
	return p
}

func differenceProps(may bool) views.DifferenceProps {
	p := views.DifferenceProps{
		Layout: layout("Stored and fetched", views.SectionReplays, views.RoleOperator), ReplayID: "12", ItemID: "71", JobID: "31", Version: 1,
		URL: "https://shop.example/" + hostile, StoredAt: before(48 * time.Hour), FoundAt: before(time.Minute), MayReplace: may,
		Parts: []views.DifferencePart{
			{Name: "Markdown", Stored: "# A lamp\nPrice: 12.00\n" + hostile, Fetched: "# A lamp\nPrice: 14.00", Before: 3, After: 41},
			{Name: "HTML", Same: true},
		},
	}
	if !may {
		p.ReplacedAt, p.ReplacedBy = before(time.Second), "carol"
		p.Parts[1] = views.DifferencePart{Name: "HTML", Fetched: "<h1>A lamp</h1>", Cut: true}
	}
	return p
}
