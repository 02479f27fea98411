package views_test

import (
	"strings"
	"time"

	"rollcall/views"
)

func resultStories() []story {
	base := views.ResultProps{
		Layout: layout("Result", views.SectionBatches, views.RoleAnalyst), ItemID: "1", URL: "https://shop.sandbox.test/p/1", BatchID: "12", BatchName: "Product pages, November",
		JobID: "104", Net: "webhook", StoredAt: before(40 * time.Second), Title: "Copper kettle, 1.7 l", HasMD: true, HasHTML: true, Bytes: 48213, Version: 2, Latest: 2,
		VersionsTotal: views.Known(1), SameTotal: views.Known(3),
	}
	made := make([]story, 0, 12)
	for _, tab := range []string{views.TabRead, views.TabMarkdown, views.TabPreview, views.TabHTML, views.TabMetadata, views.TabLinks, views.TabStory, views.TabHistory} {
		p := base
		p.Tab, p.Truncated = tab, tab == views.TabHTML
		fillTab(&p)
		made = append(made, story{"result-" + tab, views.Result(p)})
	}
	bare := views.ResultProps{
		Layout: layout("Result", "", views.RoleAnalyst), ItemID: "2", URL: "https://shop.sandbox.test/p/2", BatchID: "12", BatchName: "B", HasHTML: true, Tab: views.TabHTML,
		Source: views.Source{Empty: true}, Mark: "blocked", MarkReason: "asks for a captcha",
	}
	earlier := base
	earlier.Version, earlier.ReplacedAt, earlier.Tab, earlier.Title = 1, before(time.Hour), views.TabLinks, hostile
	return append(made, story{"result-empty", views.Result(bare)}, story{"result-earlier", views.Result(earlier)})
}

// fillTab fills in what one tab of a result shows.
func fillTab(p *views.ResultProps) {
	switch p.Tab {
	case views.TabRead:
		p.SafeHTML = `<h1>Copper kettle, 1.7 l</h1><p>A <strong>heavy</strong> kettle with a <a href="https://shop.sandbox.test/p/2" rel="nofollow">matching pan</a>. غلاية نحاس 🫖</p><h2>Measures</h2><table><thead><tr><th>What</th><th>How much</th></tr></thead><tbody><tr><td>Weight</td><td>1.9 kg</td></tr></tbody></table><pre><code>GET /p/1 HTTP/1.1</code></pre><blockquote><p>Boils fast.</p></blockquote>`
	case views.TabMarkdown:
		p.Source = views.Source{First: 1, Total: 4, Lines: []string{"# Copper kettle, 1.7 l", "", "A **heavy** kettle." + strings.Repeat(" And a long line", 30), hostile}}
	case views.TabHTML:
		p.Source = views.Source{First: 4001, Total: 9000, Lines: []string{"<!doctype html>", "<title>Copper kettle</title>", hostile, "\tغلاية"}, Begin: "/results/1?tab=html", Next: "/results/1?line=4005&tab=html"}
	case views.TabMetadata:
		p.Steps = []views.Step{
			{Name: "Submitted", At: before(61 * time.Second)},
			{Name: "Accepted by the vendor", At: before(60 * time.Second), After: time.Second, Known: true},
			{Name: "Done at the vendor"},
			{Name: "Stored", At: before(40 * time.Second), After: 20 * time.Second, Known: true},
		}
		p.Contents = []views.Content{
			{Name: "Markdown", Bytes: 8213, Words: views.Known(1204), SHA256: strings.Repeat("0123456789abcdef", 4)},
			{Name: "HTML", Bytes: 40_000, Words: views.Count{N: 1, Known: true}, SHA256: strings.Repeat("fedcba9876543210", 4)},
		}
		p.Line = views.ItemLine{Number: views.Known(1082), Original: "<shop.sandbox.test/p/1>, " + hostile, Mended: "quotes or brackets around it removed, https:// put in front"}
		p.Columns = views.LineColumns{Shown: []views.Pair{{Name: "sku", Value: "SKU-0002"}, {Name: "Name des Artikels", Value: hostile}}}
		p.Metadata = []views.Pair{{Name: "HTTP status", Value: "200"}, {Name: "Tokens charged", Value: "1"}}
		p.Vendor = []views.Pair{{Name: "url", Value: hostile}, {Name: hostile, Value: "x"}}
	case views.TabLinks:
		p.LinkFilter = views.LinkFilter{Known: true, Internal: 1, External: 1, Fit: 2, Text: hostile}
		p.Links = []views.Link{{URL: "https://shop.sandbox.test/p/2", Href: "https://shop.sandbox.test/p/2", Text: "matching pan"}, {URL: "javascript:alert(1)", Text: hostile, External: true}}
	case views.TabStory:
		p.Story = []views.TimelineEvent{
			{At: before(61 * time.Second), Kind: "intended", Title: "Submitted", Detail: "in " + hostile, Path: "/batches/12"},
			{At: before(60 * time.Second), Kind: "accepted", Title: "Accepted by the vendor"},
			{At: before(41 * time.Second), Kind: "delivery", Net: "webhook", Title: "The delivery that told of it", Detail: "extraction.completed, answered 200, verified with version 2 of the secret", Path: "/deliveries/7"},
			{At: before(40 * time.Second), Kind: "stored", Net: "webhook", Title: "Stored"},
		}
	case views.TabHistory:
		p.Versions = []views.VersionRow{
			{Version: 2, Present: true, StoredAt: before(40 * time.Second), Net: "webhook", Bytes: 48213},
			{Version: 1, StoredAt: before(3 * time.Hour), ReplacedAt: before(40 * time.Second), Net: "webhook", Bytes: 47000},
		}
		p.Same = []views.SameRow{
			{ItemID: "9", URL: "https://shop.sandbox.test/p/1", BatchID: "11", BatchName: "News front pages", StoredAt: before(26 * time.Hour), Status: 200, Bytes: 48000},
			{ItemID: "8", URL: "HTTPS://shop.sandbox.test:443/p/1#top", BatchID: "10", BatchName: hostile, StoredAt: before(50 * time.Hour), Status: 503, Mark: "blocked", Bytes: 812},
			{ItemID: "77", URL: "https://shop.sandbox.test/p/1", BatchID: "13", BatchName: "A later one", StoredAt: now(), Status: 200, Bytes: 48100},
			{ItemID: "7", URL: "https://shop.sandbox.test/p/1", BatchID: "9", BatchName: "B", StoredAt: before(90 * time.Hour), Bytes: 48213, Equal: true},
		}
	}
}

func searchStories() []story {
	blank := views.SearchProps{Layout: layout("Search", views.SectionSearch, views.RoleAnalyst), Zone: "UTC"}
	found := blank
	found.Query, found.Asked, found.Order, found.Total = `copper "kettle"`, true, views.OrderBest, views.Count{N: 1000, Known: true, More: true}
	found.Batch, found.Waiting, found.Older, found.From = "12", views.Known(1200), true, before(30*24*time.Hour)
	found.Pager = views.Pager{Older: "/search?from=x&q=copper", Newer: "/search?q=copper"}
	found.Rows = []views.SearchRow{
		{
			ItemID: "1", Title: "Copper kettle, 1.7 l", URL: "https://shop.sandbox.test/p/1", BatchID: "12", BatchName: "Product pages, November", StoredAt: before(40 * time.Second), Status: 200, Snippet: []views.Piece{{Text: "A heavy "}, {Text: "copper", Hit: true}, {Text: " "}, {Text: "kettle", Hit: true}, {Text: " that boils fast … and lasts."}},
			TitlePieces: []views.Piece{{Text: "Copper", Hit: true}, {Text: " "}, {Text: "kettle", Hit: true}, {Text: ", 1.7 l"}},
		},
		{
			ItemID: "2", Title: hostile, URL: hostile, BatchID: "8", BatchName: hostile, StoredAt: before(time.Hour), Status: 403, Mark: "blocked", Snippet: []views.Piece{{Text: hostile}, {Text: hostile, Hit: true}},
			URLPieces: []views.Piece{{Text: hostile, Hit: true}},
		},
		{ItemID: "3", URL: "https://forum.sandbox.test/رسالة?" + strings.Repeat("q=1&", 750), BatchID: "12", BatchName: "Product pages, November", StoredAt: before(2 * time.Hour), Mark: "empty", Snippet: []views.Piece{{Text: "غلاية نحاس"}}},
	}
	none := blank
	none.Query, none.Asked, none.Total = "nosuchword", true, views.Known(0)
	cut := found
	cut.Order, cut.Cut, cut.Back, cut.Rows, cut.Total, cut.Older, cut.Waiting = views.OrderNewest, true, before(400*time.Hour), found.Rows[:1], views.Count{N: 1, Known: true, More: true}, false, views.Known(1)
	wrong := blank
	wrong.Query, wrong.Batch, wrong.Since, wrong.Host = hostile, "twelve", "yesterday", "shop.sandbox.test"
	wrong.Errors = views.Errors{"batch": "The number of a batch is a whole number from 1 on.", "since": `"yesterday" is no time. Write it like 2026-11-29 14:00, or 2026-11-29 for the day.`}
	without := blank
	without.Query, without.Without = "-copper", true
	return []story{
		{"search", views.Search(blank)},
		{"search-found", views.Search(found)},
		{"search-none", views.Search(none)},
		{"search-cut", views.Search(cut)},
		{"search-errors", views.Search(wrong)},
		{"search-without", views.Search(without)},
	}
}
