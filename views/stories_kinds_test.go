package views_test

import (
	"strconv"
	"time"

	"rollcall/views"
)

func kindStories() []story {
	return append(append(crawlFormStories(), treeStories()...), syncStories()...)
}

func crawlFormStories() []story {
	blank := views.NewCrawlProps{
		Layout: layout("New crawl", views.SectionNewBatch, views.RoleAnalyst), Depth: "2", Limit: "100", SameDomain: true,
		Fetch: views.Fetch{Markdown: true}, MaxDepth: 10, MaxLimit: 10_000,
	}
	wrong := blank
	wrong.Name, wrong.Seed, wrong.Depth, wrong.Limit, wrong.Markdown = hostile, hostile, "deep", "99999999", false
	wrong.WaitTimeout = "soon"
	wrong.Errors = views.Errors{
		"urls": "This is no URL that can be fetched.", "depth": "Give a whole number from 1 to 10.", "limit": "Give a whole number from 1 to 10,000.",
		"format": "Choose at least one format.", "wait_timeout": "Give a number of seconds, such as 30.",
	}
	try := views.TryProps{Layout: layout("Try one URL now", views.SectionNewBatch, views.RoleAnalyst), Fetch: views.Fetch{Markdown: true}}
	wrongTry := try
	wrongTry.URL, wrongTry.Errors = hostile, views.Errors{"urls": "This is no URL that can be fetched."}
	return []story{
		{"crawl-new", views.NewCrawl(blank)},
		{"crawl-new-errors", views.NewCrawl(wrong)},
		{"try", views.Try(try)},
		{"try-errors", views.Try(wrongTry)},
	}
}

func crawlProps() views.BatchProps {
	p := batchProps()
	p.Kind, p.Name, p.Crawl = "crawl", "Docs site", &views.CrawlSettings{
		Seed: "https://docs.sandbox.test/", SeedItem: "1", Depth: 3, Limit: 500, SameDomain: true, Subdomains: true,
	}
	p.RollCall = rollCall(0, 0, 1, 0, 49, nets(198, 0, 0, 0, 0))
	p.RollCall.SoFar, p.MayCancel = true, true
	p.Vendor = views.AtWork{Jobs: views.Known(1), Reported: views.Known(0)}
	p.Jobs = []views.JobRow{{
		ID: "106", VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11", Kind: "crawl", State: "accepted", MayCancel: true,
		RollCall: rollCall(0, 0, 1, 0, 49, nets(198, 0, 0, 0, 0)), CreatedAt: before(2 * time.Minute),
	}}
	p.JobsTotal, p.JobsPager = views.Known(1), views.Pager{}
	p.Items.Tabs.Crawl, p.Items.Tabs.Tree = true, true
	p.Items.Items = nil
	p.Items.Tree = &views.Tree{BatchID: "12", Pages: []views.TreePage{
		{ID: "1", URL: "https://docs.sandbox.test/", State: "stored", Net: "webhook", Depth: 1, Children: views.Known(1204), Bytes: 48213, At: before(time.Minute)},
	}}
	return p
}

func treeStories() []story {
	roots := crawlProps()
	level := crawlProps()
	level.Items.Pager = views.Pager{Older: "/batches/12/items?view=tree&parent=2&from=x", Newer: "/batches/12/items?view=tree&parent=2"}
	level.Items.Tree = &views.Tree{
		BatchID: "12", Trail: []views.TreeStep{{ID: "1", URL: "https://docs.sandbox.test/"}, {ID: "2", URL: "https://docs.sandbox.test/guides/" + hostile}},
		Pages: []views.TreePage{
			{ID: "3", URL: "https://docs.sandbox.test/guides/first-steps", State: "stored", Net: "poll", Depth: 3, Children: views.Known(12), Bytes: 9120, At: before(40 * time.Second)},
			{ID: "4", URL: hostile, State: "failed", Code: "NOT_FOUND", Message: hostile, Depth: 3, Children: views.Known(0), At: before(30 * time.Second)},
			{ID: "5", URL: "https://docs.sandbox.test/guides/रसोई", State: "outstanding", Depth: 3, Children: views.Known(0)},
		},
	}
	empty := crawlProps()
	empty.Items.Tree = &views.Tree{BatchID: "12", Trail: level.Items.Tree.Trail}
	fresh := crawlProps()
	fresh.Items.Tree = &views.Tree{BatchID: "12"}
	table := crawlProps()
	table.Layout = layout("Docs site", views.SectionBatches, views.RoleOperator)
	table.CancelAt, table.CancelBy, table.MayCancel = before(20*time.Second), "alice", true
	table.Items.Tree, table.Items.Tabs.Tree = nil, false
	table.Items.Items = itemRows()
	for i := range table.Items.Items {
		table.Items.Items[i].Depth = 2
		table.Items.Items[i].Parent, table.Items.Items[i].ParentID = "https://docs.sandbox.test/guides/", "2"
	}
	table.Items.Items[0].Depth, table.Items.Items[0].Parent = 1, ""
	table.Items.Items[3].Parent, table.Items.Items[3].ParentID = hostile, ""
	return []story{
		{"crawl", views.Batch(roots)},
		{"crawl-level", views.Batch(level)},
		{"crawl-level-empty", views.Batch(empty)},
		{"crawl-fresh", views.Batch(fresh)},
		{"crawl-table", views.Batch(table)},
	}
}

func syncStories() []story {
	asking := views.ItemProps{
		Layout: layout("Tried now", views.SectionBatches, views.RoleAnalyst), ID: "3", URL: "https://shop.sandbox.test/p/1", Place: 1, State: "outstanding",
		BatchID: "12", BatchName: "Try: shop.sandbox.test", CreatedAt: before(2 * time.Second), Live: true,
		Sync: &views.SyncCall{Made: before(2 * time.Second), CalledAt: before(time.Second), AtMost: 2 * time.Minute},
	}
	stored := asking
	stored.State, stored.Net, stored.HasResult, stored.Live, stored.AnswerAt = "stored", "sync", true, false, now()
	stored.Sync = &views.SyncCall{Made: before(4 * time.Second), CalledAt: before(3 * time.Second), EndedAt: now(), Note: "stored"}
	stored.SafeHTML, stored.Cut = "<h1>Copper kettle, 1.7 l</h1><p>A <strong>heavy</strong> kettle.</p>", true
	lost := stored
	lost.State, lost.Net, lost.HasResult, lost.SafeHTML, lost.MayResubmit = "failed", "", false, "", true
	lost.Code, lost.Message = "SYNC_LOST", "the vendor's answer was lost; the page may have been fetched and charged"
	page := views.ItemProps{
		Layout: layout("Page", views.SectionBatches, views.RoleAnalyst), ID: "3", URL: "https://docs.sandbox.test/guides/first-steps", State: "failed",
		BatchID: "12", BatchName: "Docs site", CreatedAt: before(3 * time.Minute), AnswerAt: before(time.Minute), Code: "TIMEOUT", Message: "took too long", Retryable: true, MayResubmit: true,
		Found: &views.Found{Depth: 3, Parent: "https://docs.sandbox.test/guides/", ParentID: "2", Children: views.Known(12), TreePath: "/batches/12/items?view=tree&parent=3"},
		Lineage: []views.LineageRow{
			{JobID: "98", Kind: "crawl", State: "settled", Net: "webhook", Origin: "submit", Outcome: "failed", Code: "TIMEOUT", Message: hostile, CreatedAt: before(3 * time.Minute), SettledAt: before(time.Minute)},
			{JobID: "104", Kind: "extract", State: "given_up", Net: "poll", Origin: "retry", Outcome: "retry", Code: "TIMEOUT", CreatedAt: before(time.Minute), SettledAt: before(41 * time.Second)},
			{JobID: "105", Kind: "extract", State: "settled", Net: "poll", Origin: "resubmit", Outcome: "superseded", Charged: true, CreatedAt: before(time.Minute), SettledAt: before(41 * time.Second)},
			{JobID: "106", Kind: "extract", State: "accepted", Origin: "resubmit", Current: true, CreatedAt: before(time.Minute)},
		},
	}
	return []story{
		{"item-asking", views.Item(asking)}, {"item-tried", views.Item(stored)}, {"item-lost", views.Item(lost)}, {"item-lineage", views.Item(page)},
	}
}

func planStories() []story {
	cancel := views.CancelProps{
		Layout: layout("Cancel", views.SectionBatches, views.RoleAnalyst), Title: "Cancel Product pages, November", Back: "/batches/12", BackText: "Product pages, November",
		Action: "/batches/12/cancel", Foreseen: true, Plan: views.CancelPlan{
			Jobs: views.Known(37), Unsent: views.Known(12), UnsentURLs: views.Known(1200), Calling: views.Known(1), Stoppable: views.Known(3),
			StoppableURLs: views.Known(150), RunsOut: views.Known(20), Ended: views.Known(1),
		},
	}
	late := cancel
	late.Plan = views.CancelPlan{Jobs: views.Known(2), Ended: views.Known(2)}
	jobs := cancel
	jobs.Title, jobs.JobIDs, jobs.Action, jobs.Foreseen = "Cancel 2 jobs", []string{"104", "105"}, "/jobs/cancel", false
	crawl := cancel
	crawl.Title, crawl.BackText, crawl.Crawl, crawl.Foreseen = "Cancel Docs site", "Docs site", true, false
	crawl.Plan = views.CancelPlan{
		Jobs: views.Known(3), Stoppable: views.Known(1), StoppableURLs: views.Known(1), RunsOut: views.Known(2), Ended: views.Known(0),
	}
	none := jobs
	none.Plan, none.JobIDs = views.CancelPlan{Jobs: views.Known(0)}, nil
	picked := views.ResubmitProps{
		Layout: layout("Resubmit", views.SectionFailures, views.RoleAnalyst), Back: "/failures", BackText: "Failures", ItemIDs: []string{"3", "5"}, Before: "1764424930123456",
		URLs: views.Known(2), Requests: views.Known(2), Jobs: views.Known(2), Left: views.Known(1), Lost: views.Known(1), Final: views.Known(1), First: itemRows()[2:3],
	}
	all := picked
	all.All, all.ItemIDs, all.Code, all.Host, all.BatchID, all.BatchName = true, nil, "TIMEOUT", "shop.sandbox.test", "12", hostile
	all.URLs, all.Requests, all.Jobs, all.Left, all.Lost = views.Count{N: 20_000, Known: true, More: true}, views.Count{N: 20_000, Known: true, More: true}, views.Count{}, views.Known(0), views.Count{}
	all.Crawls, all.Final = views.Known(1), views.Known(16_450)
	unticked := picked
	unticked.ItemIDs, unticked.URLs, unticked.First = nil, views.Known(0), nil
	return []story{
		{"cancel", views.Cancel(cancel)},
		{"cancel-late", views.Cancel(late)},
		{"cancel-jobs", views.Cancel(jobs)},
		{"cancel-crawl", views.Cancel(crawl)},
		{"cancel-none", views.Cancel(none)},
		{"resubmit", views.Resubmit(picked)},
		{"resubmit-all", views.Resubmit(all)},
		{"resubmit-none", views.Resubmit(unticked)},
	}
}

func foreignStories() []story {
	foreign := views.DeliveriesProps{
		Layout: layout("Deliveries", views.SectionDeliveries, views.RoleOperator), About: views.AboutForeign, Foreign: views.Known(5), Held: views.Known(0),
		Pager: views.Pager{Older: "/deliveries?about=foreign&from=x"},
	}
	for i := range 5 {
		foreign.Jobs = append(foreign.Jobs, views.EventRow{
			VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d1" + strconv.Itoa(i), Event: "extract_completed", At: before(time.Duration(i) * time.Hour),
			Deliveries: views.Known(int64(i)), DeliveryID: strconv.Itoa(i),
		})
	}
	foreign.Jobs[0].VendorID, foreign.Jobs[1].DeliveryID = hostile, ""
	held := foreign
	held.About, held.Jobs, held.Pager = views.AboutHeld, nil, views.Pager{}
	return []story{{"deliveries-foreign", views.Deliveries(foreign)}, {"deliveries-held", views.Deliveries(held)}}
}
