package views_test

import (
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"rollcall/views"
)

func texts(s *goquery.Selection) []string {
	return s.Map(func(_ int, each *goquery.Selection) string { return strings.Join(strings.Fields(each.Text()), " ") })
}

func TestMenuShowsWhatTheRoleMayOpen(t *testing.T) {
	t.Parallel()
	everybody := []string{"/", "/batches", "/batches/new", "/schedules", "/search", "/exports", "/failures", "/deliveries", "/reconcile"}
	operators := []string{"/", "/batches", "/batches/new", "/schedules", "/search", "/exports", "/failures", "/deliveries", "/replays", "/reconcile"}
	for role, want := range map[string][]string{
		views.RoleAnalyst:  everybody,
		views.RoleOperator: operators,
		views.RoleAdmin:    append(append([]string{}, operators...), "/webhooks", "/users", "/audit"),
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			doc := parse(t, views.Batches(views.BatchesProps{Layout: layout("Batches", views.SectionBatches, role)}))
			got := doc.Find(".menu a").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("href", "") })
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("menu (-got +want):\n%s", diff)
			}
			if got := doc.Find(`.menu a[aria-current="page"]`).AttrOr("href", ""); got != "/batches" {
				t.Errorf("current entry: got %q, want /batches", got)
			}
		})
	}
}

func TestOperatorsAloneGetTheirButtons(t *testing.T) {
	t.Parallel()
	tests := []struct{ story, action string }{
		{"overview-trouble", "/dispatch/resume"},
		{"job", "/jobs/104/settle"},
		{"reconcile", "/reconcile"},
	}
	analyst := map[string]string{"overview-trouble": "overview-trouble-analyst", "job": "job-analyst", "reconcile": "reconcile-none"}
	for _, test := range tests {
		t.Run(test.action, func(t *testing.T) {
			t.Parallel()
			form := `form[method="post"][action="` + test.action + `"]`
			if got := find(t, test.story).Find(form).Length(); got != 1 {
				t.Errorf("forms for an operator: got %d, want 1", got)
			}
			if got := find(t, analyst[test.story]).Find(form).Length(); got != 0 {
				t.Errorf("forms for an analyst: got %d, want 0", got)
			}
		})
	}
}

func find(t *testing.T, name string) *goquery.Document {
	t.Helper()
	for _, each := range stories() {
		if each.name == name {
			return parse(t, each.page)
		}
	}
	t.Fatalf("no story %q", name)
	return nil
}

func TestRollCallIsDrawnAsTheSumThatProvesIt(t *testing.T) {
	t.Parallel()
	doc := find(t, "batch")
	got := texts(doc.Find("#roll-call .term-count"))
	want := []string{"300", "295", "3", "2", "295", "241", "5", "0", "49"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("terms (-got +want):\n%s", diff)
	}
	if got := texts(doc.Find("#roll-call .nets li")); cmp.Diff(got, []string{
		"Webhook 198 66 %", "Poll 31 10 %", "Reconcile 12 4 %", "Failed 5 2 %", "Outstanding 49 16 %", "Rejected 5 2 %",
	}) != "" {
		t.Errorf("nets: got %q", got)
	}
	if got := doc.Find("#roll-call [data-balance=ok]").Length(); got != 1 {
		t.Error("the sum balances, but the page doesn't say so")
	}
}

func TestRollCallThatDoesNotBalanceSaysSo(t *testing.T) {
	t.Parallel()
	if got := find(t, "batch-unbalanced").Find("[data-balance=bad]").Length(); got != 1 {
		t.Errorf("warnings: got %d, want 1", got)
	}
}

func TestUnknownCountsAreDashesNeverZero(t *testing.T) {
	t.Parallel()
	doc := find(t, "batch-unknown")
	for _, word := range []string{"stored", "failed", "cancelled", "outstanding"} {
		if got := doc.Find("#roll-call .term-" + word + " .term-count").Text(); got != "–" {
			t.Errorf("%s: got %q, want a dash", word, got)
		}
	}
	if got := doc.Find("[data-balance=unknown]").Length(); got != 1 {
		t.Error("the page doesn't say that numbers are unknown")
	}
}

func TestNewBatchGivesBackWhatWasTyped(t *testing.T) {
	t.Parallel()
	doc := find(t, "batch-new-errors")
	for field, want := range map[string]string{"name": "Product pages", "proxy_country": "DEU", "wait_timeout": "soon"} {
		if got := doc.Find(`input[name="`+field+`"]`).AttrOr("value", ""); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
	if got := doc.Find(`textarea[name="urls"]`).Text(); !strings.HasSuffix(got, hostile) {
		t.Errorf("urls: got %q", got)
	}
	if got := doc.Find(`textarea[name="headers"]`).Text(); got != "Accept-Language: de\nno colon here" {
		t.Errorf("headers: got %q", got)
	}
	if got := doc.Find(`input[name="render_js"][checked], input[value="html"][checked]`).Length(); got != 2 {
		t.Errorf("ticked boxes: got %d, want 2", got)
	}
	if _, open := doc.Find("details").Attr("open"); !open {
		t.Error("the group with errors is closed")
	}
}

func TestNewBatchNamesEachMistakeTwice(t *testing.T) {
	t.Parallel()
	doc := find(t, "batch-new-errors")
	for _, field := range []string{"urls", "proxy_country", "wait_timeout", "headers"} {
		if got := doc.Find(`#error-summary a[href="#` + field + `"]`).Length(); got != 1 {
			t.Errorf("%s in the summary: got %d, want 1", field, got)
		}
		described := doc.Find("#"+field).AttrOr("aria-describedby", "")
		if got := doc.Find("#" + described).Text(); described == "" || got == "" {
			t.Errorf("%s isn't tied to its error", field)
		}
	}
	got := texts(doc.Find(`[data-testid="bad-lines"] tbody tr`).First().Children())
	if diff := cmp.Diff(got, []string{"2", "javascript:alert(1)", "only http and https can be fetched"}); diff != "" {
		t.Errorf("first bad line (-got +want):\n%s", diff)
	}
	if got := texts(doc.Find(`[data-testid="bad-lines"] .form-check-label`)); got[0] != "Leave the 1,204 bad lines out and submit the rest" {
		t.Errorf("tick: got %q", got)
	}
}

func TestHeaderValuesAreMasked(t *testing.T) {
	t.Parallel()
	got := texts(find(t, "batch").Find(`[data-testid="options"] li`))
	if joined := strings.Join(got, "|"); !strings.Contains(joined, "Authorization: ••••••") {
		t.Errorf("options: got %q", joined)
	}
}

func TestResultFrameIsSandboxed(t *testing.T) {
	t.Parallel()
	frame := find(t, "result-preview").Find("iframe")
	if value, has := frame.Attr("sandbox"); !has || value != "" {
		t.Errorf("sandbox attribute: got %q, %v; want it empty", value, has)
	}
	if got := frame.AttrOr("src", ""); got != "/results/1/preview" {
		t.Errorf("src: got %q", got)
	}
}

func TestLiveMessagesHoldPartialsOnly(t *testing.T) {
	t.Parallel()
	tabs := tabs()
	batch := parse(t, views.BatchLive(views.BatchLiveProps{RollCall: running(), Jobs: jobRows(), JobsTotal: views.Known(6), Tabs: &tabs}))
	overview := parse(t, views.OverviewLive(overviewProps(views.RoleAnalyst)))
	for name, docs := range map[string][2]*goquery.Document{"batch": {batch, find(t, "batch")}, "overview": {overview, find(t, "overview")}} {
		targets := docs[0].Find("hx-partial").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("hx-target", "") })
		if len(targets) < 4 {
			t.Errorf("%s: partials for %q only", name, targets)
		}
		for _, target := range targets {
			if got := docs[1].Find(target).Length(); got != 1 {
				t.Errorf("%s: elements %s on the page: got %d, want 1", name, target, got)
			}
		}
	}
}

func TestTimesAreMachineReadableAndUTCWithoutScripts(t *testing.T) {
	t.Parallel()
	got := find(t, "account").Find("main time").First()
	if want := "29 Nov 2026, 13:02 UTC"; got.Text() != want {
		t.Errorf("text: got %q, want %q", got.Text(), want)
	}
	stamp, err := time.Parse(time.RFC3339, got.AttrOr("datetime", ""))
	if err != nil || !stamp.Equal(before(time.Hour)) {
		t.Errorf("datetime: got %v, %v", stamp, err)
	}
}

func TestSandboxBannerIsOnEveryPage(t *testing.T) {
	t.Parallel()
	for _, each := range stories() {
		if got := parse(t, each.page).Find(".sandbox").Length(); got != 1 {
			t.Errorf("%s: banners: got %d, want 1", each.name, got)
		}
	}
}

// A crawl may have answers for all pages known so far; it is finished when it is settled.
func TestARunningCrawlIsNotFinished(t *testing.T) {
	t.Parallel()
	for _, soFar := range []bool{true, false} {
		counts := rollCall(0, 0, 0, 0, 0, nets(50, 0, 0, 0, 0))
		counts.SoFar = soFar
		var page strings.Builder
		if err := views.BatchLive(views.BatchLiveProps{RollCall: counts}).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		if finished := strings.Contains(page.String(), "data-finished"); finished == soFar {
			t.Errorf("so far: %t, finished: %t", soFar, finished)
		}
	}
}
