package views_test

import (
	"fmt"
	"strings"
	"time"

	"rollcall/views"
)

// preflightStory is a CSV of which most is good.
func preflightStory() views.PreflightProps {
	return views.PreflightProps{
		Layout: layout("Check before you submit", views.SectionNewBatch, views.RoleAnalyst), ID: "31", Reading: 1, Name: "Product pages, November",
		Upload: "products.csv", UploadAs: 1_204_331, ExpiresAt: now().Add(23 * time.Hour),
		Submitted: views.Known(1240), Accepted: views.Known(1198), Fixed: views.Known(21), Duplicate: views.Known(38), Invalid: views.Known(4),
		Hosts: []views.HostLines{
			{Host: "shop.sandbox.test", URLs: views.Known(1020)}, {Host: "xn--bcher-kva.example", URLs: views.Known(177)}, {Host: "news.sandbox.test", URLs: views.Known(1)},
		},
		OtherHosts: views.Known(0), OtherURLs: views.Known(0), PrivateURLs: views.Known(0),
		Found: views.PreflightFound{
			Format: "csv", Charset: "windows-1252", Delimiter: ";", Header: true, URLColumn: "page", Columns: []string{"sku", "price"},
			All: []string{"sku", "page", "price"},
		},
		Plan: views.PreflightPlan{
			Kind: "batch", Requests: views.Known(1198), Jobs: views.Known(2), Account: views.AccountLeft{Left: views.Known(48_210), At: before(2 * time.Minute)},
			Takes: 9 * time.Minute, Batches: views.Known(20), URLs: views.Known(41_033), Took: 5*time.Hour + 8*time.Minute,
		},
		Tab: "invalid",
		Lines: []views.PreflightLine{
			{Number: 17, Original: "javascript:alert(1)", Reason: "begins with \"javascript:\" instead of http:// or https://"},
			{Number: 311, Original: "", Reason: "has no URL in this column"},
			{Number: 902, Original: "https://", Reason: "names no host"},
			{Number: 1188, Original: hostile, Reason: "cannot be read as a URL"},
		},
	}
}

func preflightStories() []story {
	faulty := preflightStory()
	fixed := preflightStory()
	fixed.Tab, fixed.Pager = "fixed", views.Pager{Older: "/preflights/31?from=x&verdict=fixed"}
	fixed.Lines = []views.PreflightLine{
		{Number: 3, Original: "shop.sandbox.test/p/3", URL: "https://shop.sandbox.test/p/3", Reason: "https:// was put in front"},
		{Number: 8, Original: "“https://shop.sandbox.test/p/8”,", URL: "https://shop.sandbox.test/p/8", Reason: "quotes and a comma were taken away"},
		{Number: 40, Original: "https://shop.sandbox.test/a long name/" + strings.Repeat("and-on-it-goes-", 12), URL: "https://shop.sandbox.test/a%20long%20name/" + strings.Repeat("and-on-it-goes-", 12), Reason: "spaces were written %20"},
	}
	poor := preflightStory()
	poor.Tab, poor.Plan.Account.Left, poor.Plan.Takes, poor.Choices = "duplicate", views.Known(400), 0, views.PreflightChoices{StoredDays: "7", URLColumn: "2", KeepFragment: true, Header: "yes"}
	poor.Notice = "This was read in another way meanwhile, so nothing was submitted. Look at it again."
	poor.Lines = []views.PreflightLine{
		{Number: 5, Original: "HTTPS://Shop.Sandbox.test:443/p/1", Reason: "is the same as line 1"},
		{Number: 6, Original: "https://shop.sandbox.test/p/2", Reason: "its page was stored on 27 Nov 2026 at 09:12 UTC", StoredItem: "4711"},
	}
	return append([]story{
		{"preflight", views.Preflight(faulty)}, {"preflight-fixed", views.Preflight(fixed)}, {"preflight-duplicates", views.Preflight(poor)},
	}, preflightEdges()...)
}

// preflightEdges are the ends of what a file may be.
func preflightEdges() []story {
	nothing := preflightStory()
	nothing.Submitted, nothing.Accepted, nothing.Fixed, nothing.Duplicate, nothing.Invalid = views.Known(4), views.Known(0), views.Known(0), views.Known(0), views.Known(4)
	nothing.Hosts, nothing.Upload, nothing.Pasted = nil, "", 112
	nothing.Found = views.PreflightFound{Format: "txt", Charset: "utf-8"}

	broken := preflightStory()
	broken.Problem, broken.Upload = "there is no column 9", hostile
	broken.Errors, broken.Choices = views.Errors{"url_column": "there is no column 9"}, views.PreflightChoices{URLColumn: "9", Format: "csv", Delimiter: ";"}
	broken.Submitted, broken.Accepted, broken.Fixed, broken.Duplicate, broken.Invalid = views.Known(0), views.Known(0), views.Known(0), views.Known(0), views.Known(0)
	broken.Hosts, broken.Lines, broken.Found.Charset = nil, nil, ""

	large := preflightStory()
	large.Submitted, large.Accepted, large.Fixed, large.Duplicate, large.Invalid = views.Known(200_000), views.Known(199_998), views.Known(0), views.Known(2), views.Known(0)
	large.Upload, large.UploadAs, large.Found = "sitemap-of-everything-in-the-shop-with-a-rather-long-name.xml.gz", 15_998_112, views.PreflightFound{Format: "sitemap", Charset: "utf-8", Gzipped: true}
	large.Plan = views.PreflightPlan{Kind: "batch", Requests: views.Known(199_998), Jobs: views.Known(200), Account: views.AccountLeft{Why: "the vendor's answer does not say what is left"}}
	large.Tab, large.Lines, large.Hosts = "accepted", nil, nil
	for i := range 50 {
		large.Lines = append(large.Lines, views.PreflightLine{Number: i + 1, Original: fmt.Sprintf("https://shop%d.sandbox.test/p/%d", i%20, i)})
	}
	for i := range 20 {
		large.Hosts = append(large.Hosts, views.HostLines{Host: fmt.Sprintf("shop%d.sandbox.test", i), URLs: views.Known(int64(9000 - i))})
	}
	large.Hosts[19].Host, large.Hosts[19].Private, large.PrivateURLs = "intranet", true, views.Known(8984)
	large.OtherHosts, large.OtherURLs, large.Pager = views.Known(4711), views.Known(20_188), views.Pager{Older: "/preflights/31?from=x&verdict=accepted"}

	kept := views.NewBatchProps{
		Layout: layout("New batch", views.SectionNewBatch, views.RoleAnalyst), Kind: "auto", Fetch: views.Fetch{Markdown: true},
		Kept: "31", KeptName: hostile + "\u202e.csv", KeptSize: 1_204_331, How: `{"choices":{"url_column":"2"},"stored_days":7}`,
	}
	return []story{
		{"preflight-nothing", views.Preflight(nothing)},
		{"preflight-broken", views.Preflight(broken)},
		{"preflight-large", views.Preflight(large)},
		{"batch-new-kept", views.NewBatch(kept)},
	}
}
