package views_test

import (
	"path"
	"strings"
	"time"

	"rollcall/views"
)

func exportStories() []story {
	l := layout("Exports", views.SectionExports, views.RoleAnalyst)
	rows := []views.ExportRow{
		{ID: "9", Name: "batch-12-20261129-140210.parquet", Picked: "items of batch 12, " + hostile, By: "alice", State: "running", At: before(time.Minute), Rows: views.Known(81_200), Expected: views.Known(200_000), Bytes: views.Known(312_000_000)},
		{ID: "8", Name: "items-20261129-140150.csv", Picked: "items of all batches, with state failed", By: hostile, State: "waiting", At: before(2 * time.Minute), Rows: views.Known(0), Bytes: views.Known(0)},
		{ID: "7", Name: "batch-12-20261129-130000.zip", Picked: "items of batch 12, nightly", By: "alice", State: "done", At: before(time.Hour), EndedAt: before(50 * time.Minute), ExpiresAt: before(-71 * time.Hour), Rows: views.Known(200_000), Bytes: views.Known(640_000_000), SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Downloads: views.Known(2)},
		{ID: "6", Name: "batch-11-20261128-130000.csv", Picked: "items of batch 11", By: "alice", State: "done", Direct: true, At: before(26 * time.Hour), EndedAt: before(26 * time.Hour), Rows: views.Known(499), Bytes: views.Known(4_100_000), SHA256: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"},
		{ID: "5", Name: "batch-10-20261128-120000.csv", Picked: "items of batch 10", By: "alice", State: "failed", Direct: true, At: before(27 * time.Hour), EndedAt: before(27 * time.Hour), Rows: views.Known(120), Bytes: views.Known(900_000), Reason: "it was broken off"},
		{ID: "4", Name: "batch-9-20261120-120000.jsonl", Picked: "items of batch 9", By: "alice", State: "failed", At: before(28 * time.Hour), EndedAt: before(28 * time.Hour), Rows: views.Known(1), Bytes: views.Known(9), Reason: "the space for exports is used up; delete some, or narrow the filter"},
		{ID: "3", Name: "batch-8-20261120-120000.jsonl", Picked: "items of batch 8", By: "alice", State: "cancelled", At: before(29 * time.Hour), EndedAt: before(29 * time.Hour), Rows: views.Known(80), Bytes: views.Known(90_000)},
		{ID: "2", Name: "batch-7-20261101-120000.jsonl", Picked: "items of batch 7", By: "alice", State: "expired", At: before(90 * time.Hour), EndedAt: before(90 * time.Hour), Rows: views.Known(8000), Bytes: views.Known(9_000_000), SHA256: "9f86d081884c7d65"},
	}
	one := func(row views.ExportRow, live bool) views.ExportProps {
		row.Format = strings.TrimPrefix(path.Ext(row.Name), ".")
		return views.ExportProps{
			Layout: layout(row.Name, views.SectionExports, views.RoleAnalyst), ExportRow: row, Live: live, Self: "/exports/" + row.ID,
			Choices: []string{"what is known of each item", "Markdown", "cells safe for spreadsheets"},
		}
	}
	form := views.NewExportProps{
		Layout: layout("Export items", views.SectionExports, views.RoleAnalyst), Back: "/batches/12", BackText: "Batch 12", Picked: "items of batch 12, " + hostile + ", with state stored",
		Rows: views.Known(499), Bytes: views.Known(4_100_000), Fields: []views.Option{{Value: "batch", Text: "12"}, {Value: "chosen", Text: "1"}}, Once: "once-1",
		Format: "csv", Markdown: true, SafeCells: true, Columns: []views.Option{{Value: "id", Text: "Number of the item."}, {Value: "url", Text: "The URL as the vendor got it."}},
	}
	large := form
	large.Rows, large.Bytes, large.TooLarge, large.Format = views.Count{N: 20_000, Known: true, More: true}, views.Count{N: 180_000_000, Known: true, More: true}, true, "parquet"
	again := one(rows[0], true)
	again.Begun = 2
	return []story{
		{"exports", views.Exports(views.ExportsProps{Layout: l, Rows: rows, Live: true, Self: "/exports", Keep: 72 * time.Hour, Pager: views.Pager{Older: "/exports?from=abc"}})},
		{"exports-none", views.Exports(views.ExportsProps{Layout: layout("Exports", views.SectionExports, views.RoleAdmin), Everyone: true, Keep: 72 * time.Hour, Self: "/exports"})},
		{"export-running", views.Export(again)},
		{"export-done", views.Export(one(rows[2], false))},
		{"export-sent", views.Export(one(rows[3], false))},
		{"export-failed", views.Export(one(rows[5], false))},
		{"export-cancelled", views.Export(one(rows[6], false))},
		{"export-expired", views.Export(one(rows[7], false))},
		{"export-new", views.NewExport(form)},
		{"export-new-large", views.NewExport(large)},
	}
}

func compareStories() []story {
	p := views.CompareResultsProps{
		Layout: layout("Compare two results", views.SectionBatches, views.RoleAnalyst), Part: "markdown", Parts: []string{"markdown", "html"}, Limit: 512 << 10, Lines: 10_000,
		A: views.ComparedSide{Address: "71.v1", URL: "https://shop.example/" + hostile, ItemID: "71", BatchID: "11", Batch: "nightly", Net: "webhook", StoredAt: before(26 * time.Hour), Version: 1},
		B: views.ComparedSide{Address: "71", URL: "https://shop.example/" + hostile, ItemID: "71", BatchID: "12", Batch: hostile, Net: "poll", StoredAt: before(time.Hour), Version: 2, Latest: true},
		Diff: views.TextDiff{Gone: 2, New: 2, Rows: []views.DiffRow{
			{Kind: views.DiffFold, Hidden: 119, LeftNo: 1},
			{Kind: views.DiffSame, LeftNo: 120, RightNo: 120, Opened: true, Left: []views.DiffSpan{{Text: "Lamps"}}, Right: []views.DiffSpan{{Text: "Lamps"}}},
			{Kind: views.DiffSame, LeftNo: 121, RightNo: 121, Left: []views.DiffSpan{{Text: "# A lamp"}}, Right: []views.DiffSpan{{Text: "# A lamp"}}},
			{
				Kind: views.DiffChanged, LeftNo: 122, RightNo: 122, Left: []views.DiffSpan{{Text: "Price: "}, {Text: "12", Changed: true}, {Text: ".00 " + hostile}},
				Right: []views.DiffSpan{{Text: "Price: "}, {Text: "14", Changed: true}, {Text: ".00 " + hostile}},
			},
			{Kind: views.DiffGone, LeftNo: 123, Left: []views.DiffSpan{{Text: "In stock"}}},
			{Kind: views.DiffNew, RightNo: 123, Right: []views.DiffSpan{{Text: "שלום עולם"}}},
			{Kind: views.DiffFold, Hidden: 1, LeftNo: 124},
		}},
	}
	cut, same, missing := p, p, p
	cut.Cut, cut.Blanks, cut.Other, cut.Diff.CutRows, cut.Diff.CutWords = true, true, true, true, true
	same.Same, same.Diff = true, views.TextDiff{}
	missing.Missing, missing.Parts, missing.Part, missing.Diff = "The two have no content of the same kind.", nil, "", views.TextDiff{}
	b := views.CompareBatchesProps{
		Layout: layout("Compare two batches", views.SectionBatches, views.RoleAnalyst), Picked: true, Chosen: "11", Self: "/compare/batches?a=11&b=12",
		A:    views.ComparedBatch{ID: "11", Name: "nightly", At: before(26 * time.Hour), Stored: views.Known(99_800)},
		B:    views.ComparedBatch{ID: "12", Name: hostile, At: before(time.Hour), Stored: views.Known(100_000)},
		Kind: "changed", State: "done", At: before(time.Minute),
	}
	done, waiting, failed, asks, wrong := b, b, b, b, b
	done.Stale = true
	for i, word := range []string{"changed", "lost", "recovered", "new", "gone", "failed", "missing", "unchanged"} {
		done.Kinds = append(done.Kinds, views.ComparedKind{Word: word, Count: views.Known(int64(i%7) * 330)})
		done.Pages += int64(i%7) * 330
	}
	done.A.Pages, done.B.Pages = 5_940, 6_600
	done.Rows = []views.ComparedRow{
		{
			URL: "https://shop.example/" + hostile, A: views.ComparedSidePage{Item: "71", State: "stored", Size: views.Known(8100)},
			B: views.ComparedSidePage{Item: "171", State: "stored", Size: views.Known(8240)},
		},
		{
			URL: "https://shop.example/b", A: views.ComparedSidePage{Item: "72", State: "stored", Size: views.Known(12)},
			B: views.ComparedSidePage{Item: "172", State: "stored"},
		},
	}
	done.Pager = views.Pager{Older: "/compare/batches?a=11&b=12&from=abc"}
	gone := done
	gone.Stale, gone.Kind, gone.Pager = false, "gone", views.Pager{}
	gone.Rows = []views.ComparedRow{{URL: "https://shop.example/d", A: views.ComparedSidePage{Item: "74", State: "stored", Size: views.Known(900)}}}
	lost, neither := gone, gone
	lost.Kind, neither.Kind = "lost", "missing"
	lost.Rows = []views.ComparedRow{{
		URL: "https://shop.example/c", A: views.ComparedSidePage{Item: "73", State: "stored", Size: views.Known(900)},
		B: views.ComparedSidePage{Item: "173", State: "failed"},
	}}
	neither.Rows = []views.ComparedRow{{
		URL: "https://shop.example/e", A: views.ComparedSidePage{Item: "75", State: "cancelled"}, B: views.ComparedSidePage{Item: "175", State: "outstanding"},
	}}
	none := done
	none.Rows, none.Kind = nil, "new"
	waiting.State, waiting.Live, failed.State, failed.Reason, asks.State = "waiting", true, "failed", "it could not be worked out", ""
	wrong.Picked, wrong.Chosen, wrong.Errors = false, "9999", views.Errors{"a": "There is no batch of that number."}
	return []story{
		{"compare-results", views.CompareResults(p)},
		{"compare-results-cut", views.CompareResults(cut)},
		{"compare-results-same", views.CompareResults(same)},
		{"compare-results-missing", views.CompareResults(missing)},
		{"compare-batches", views.CompareBatches(done)},
		{"compare-batches-gone", views.CompareBatches(gone)},
		{"compare-batches-lost", views.CompareBatches(lost)},
		{"compare-batches-missing", views.CompareBatches(neither)},
		{"compare-batches-none", views.CompareBatches(none)},
		{"compare-batches-asks", views.CompareBatches(asks)},
		{"compare-batches-waiting", views.CompareBatches(waiting)},
		{"compare-batches-failed", views.CompareBatches(failed)},
		{"compare-batches-wrong", views.CompareBatches(wrong)},
	}
}
