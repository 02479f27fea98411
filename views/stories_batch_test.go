package views_test

import (
	"fmt"
	"strconv"
	"time"

	"rollcall/views"
)

func pace() views.Pace {
	return views.Pace{
		PerMinute: 42.6, Over: 5 * time.Minute, About: 70 * time.Second, Soon: 50 * time.Second, Late: 115 * time.Second,
		HeardAt: before(4 * time.Second), Open: true,
	}
}

func stuck(items int64) views.StuckProps {
	return views.StuckProps{BatchID: "12", Total: views.Known(items), Items: []views.StuckItem{
		{ID: "4", URL: "https://forum.sandbox.test/رسالة/日本語", Host: "forum.sandbox.test", JobID: "106", Since: before(43 * time.Minute), Age: 43 * time.Minute, Usual: 130 * time.Second, Answers: 412, OfHost: true, Asked: 17, VendorSays: "processing"},
		{ID: "6", URL: hostile, Host: "", JobID: "106", Since: before(41 * time.Minute), Age: 41 * time.Minute, Usual: 95 * time.Second, Answers: 2000, Asked: 16},
		{ID: "7", URL: "https://new.sandbox.test/", Host: "new.sandbox.test", JobID: "105", Since: before(31 * time.Minute), Age: 31 * time.Minute, Asked: 0},
	}}
}

func failureGroups() views.FailureGroups {
	plan := func(of string) (string, string, string) {
		return "/failures?batch=12&group=" + of, "/resubmit?all=1&batch=12&group=" + of, "/failures/resolve?all=1&batch=12&group=" + of
	}
	g := views.FailureGroups{All: "/failures?batch=12", Looked: views.Known(10_000), Cut: true, Others: views.Known(132), MayResolve: true}
	g.Groups = []views.FailureGroup{
		{Key: "89", Code: "TIMEOUT", Host: "shop.sandbox.test", Message: "Timed out after # ms in job #", Count: views.Count{N: 10_000, Known: true, More: true}, First: before(3 * time.Hour), Last: before(4 * time.Second), SampleID: "3", SampleURL: "https://shop.sandbox.test/p/1", SampleMessage: "Timed out after 30012 ms in job 9f3a2c", Retryable: true},
		{Key: "90", Code: "NOT_FOUND", Host: "news.sandbox.test", Message: "HTTP 404 for <url>", Count: views.Known(2), First: before(2 * time.Hour), Last: before(time.Hour), SampleID: "8", SampleURL: "https://news.sandbox.test/x", SampleMessage: "HTTP 404 for https://news.sandbox.test/x"},
		{Key: "91", Code: "BLOCKED", Host: "", Message: hostile, Count: views.Known(1), First: before(time.Hour), Last: before(time.Hour), SampleID: "9", SampleURL: hostile, SampleMessage: hostile},
	}
	for i := range g.Groups {
		g.Groups[i].Path, g.Groups[i].Resubmit, g.Groups[i].Resolve = plan(g.Groups[i].Key)
	}
	return g
}

func itemFilter() views.ItemFilter {
	return views.ItemFilter{
		BatchID: "12", State: "stored", URL: hostile, Host: "shop.sandbox.test", HTTP: "4xx", MinBytes: "10 kB", Query: "host=shop.sandbox.test&http=4xx",
		Used: true, Found: views.Known(31), Among: views.Known(5000),
	}
}

func batchPageStories() []story {
	busy := batchProps()
	busy.Layout = layout(busy.Name, views.SectionBatches, views.RoleOperator)
	busy.Pace, busy.Stuck, busy.Failures, busy.Rejected = pace(), stuck(12), failureGroups(), true
	busy.Items.Filter = views.ItemFilter{BatchID: "12"}
	quiet := batchProps()
	quiet.Pace = views.Pace{Open: true, HeardAt: before(50 * time.Minute)}
	quiet.Items.Tabs.State, quiet.Items.Filter = "stored", itemFilter()
	quiet.Items.Items, quiet.Items.Looked = quiet.Items.Items[:2], views.Known(5000)
	wrong, miss, further := batchProps(), batchProps(), batchProps()
	wrong.Items.Filter = views.ItemFilter{BatchID: "12", HTTP: "40", MaxMS: "soon", Used: true, Errors: views.Errors{
		"http": "An HTTP status is a number such as 404, or a class such as 4xx.", "max_ms": "A duration is a number from 1 on, with a unit if you like, such as 1.5 s.",
	}}
	wrong.Items.Items = nil
	miss.Items.Filter, miss.Items.Items, miss.Items.Pager = itemFilter(), nil, views.Pager{}
	miss.Items.Filter.Found, miss.Items.Filter.Among = views.Known(0), views.Count{}
	further.Items.Filter, further.Items.Items, further.Items.Pager = itemFilter(), nil, views.Pager{Older: "/batches/12/items?from=x"}
	page := func(role string) views.Layout { return layout("Stuck items", views.SectionBatches, role) }
	all := stuck(6)
	all.All = true
	for i, state := range []string{"uncertain", "calling", "intended"} {
		all.Items = append(all.Items, views.StuckItem{ID: strconv.Itoa(20 + i), URL: fmt.Sprintf("https://late.sandbox.test/%d", i), JobID: "107", Since: before(40 * time.Minute), Age: 40 * time.Minute, Untaken: state})
	}
	return []story{
		{"batch-busy", views.Batch(busy)},
		{"batch-filtered", views.Batch(quiet)},
		{"batch-filter-errors", views.Batch(wrong)},
		{"batch-filter-none", views.Batch(miss)},
		{"batch-filter-further", views.Batch(further)},
		{"stuck", views.StuckPage(page(views.RoleAnalyst), "November", all)},
		{"stuck-none", views.StuckPage(page(views.RoleOperator), "November", views.StuckProps{BatchID: "12", All: true})},
	}
}

func failureStories() []story {
	list := views.FailuresProps{
		Layout: layout("Failures", views.SectionFailures, views.RoleAnalyst), Total: views.Count{N: 20_000, Known: true, More: true},
		Resubmit: "/resubmit?all=1", Resolve: "/failures/resolve?all=1", Groups: failureGroups(),
		Failures: []views.FailureRow{{ItemID: "3", URL: hostile, Code: "TIMEOUT", Message: hostile, Retryable: true, BatchID: "12", BatchName: "November", JobID: "104", Attempts: 3, At: before(time.Minute)}},
	}
	one := list
	one.GroupKey, one.BatchID, one.BatchName, one.AllGroups = "89", "12", "November", "/failures?batch=12"
	one.Groups.Groups, one.Total = one.Groups.Groups[:1], views.Known(2)
	aside := list
	aside.Standing, aside.Groups, aside.Total = "resolved", views.FailureGroups{}, views.Known(1)
	aside.Failures = []views.FailureRow{{ItemID: "3", URL: "https://shop.sandbox.test/p/3", Code: "NOT_FOUND", Message: "HTTP 404", BatchID: "12", BatchName: "November", JobID: "104", Attempts: 1, At: before(time.Hour), ResolvedAt: before(time.Minute), Note: "Taken off the shop: " + hostile}}
	none := aside
	none.Failures, none.Total = nil, views.Known(0)
	plan := views.ResolveProps{
		Layout: layout("Resolve", views.SectionFailures, views.RoleAnalyst), Back: "/failures?batch=12", BackText: "Failures", Count: views.Known(2),
		Set: "AQI", Before: "1796042530000000", BeforeAt: now(), Filter: []views.Pair{{Name: "batch", Value: "12"}}, First: itemRows()[2:3],
	}
	wrong := plan
	wrong.More, wrong.Errors, wrong.Note = true, views.Errors{"note": "Say why, so that others know."}, hostile
	left := views.ResolveProps{Layout: plan.Layout, Back: "/failures", BackText: "Failures", Count: views.Known(0)}
	item := views.ItemProps{
		Layout: layout("Item", views.SectionBatches, views.RoleAnalyst), ID: "3", URL: "https://shop.sandbox.test/p/3", Place: 3, State: "failed", BatchID: "12",
		BatchName: "November", Code: "NOT_FOUND", Message: "HTTP 404", CreatedAt: before(time.Hour), AnswerAt: before(time.Hour), MayResubmit: true,
		Resolved: &views.Resolved{At: before(time.Minute), By: "alice", Note: hostile},
	}
	return []story{
		{"failures-groups", views.Failures(list)},
		{"failures-group", views.Failures(one)},
		{"failures-resolved", views.Failures(aside)},
		{"failures-resolved-none", views.Failures(none)},
		{"resolve", views.Resolve(plan)},
		{"resolve-errors", views.Resolve(wrong)},
		{"resolve-none", views.Resolve(left)},
		{"item-resolved", views.Item(item)},
	}
}
