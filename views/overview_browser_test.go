package views_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/static"
	"rollcall/views"
)

// overviewServer serves the overview at / as it is now, under the policy.
func overviewServer(t *testing.T, now *atomic.Pointer[views.OverviewProps]) *httptest.Server {
	t.Helper()
	mux, quit := http.NewServeMux(), make(chan struct{})
	mux.Handle("/static/", static.Handler())
	mux.HandleFunc("GET /live", stream(quit, nil))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := views.Overview(*now.Load()).Render(r.Context(), w); err != nil { //nolint:contextcheck // templ hands it to each part.
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(quit) })
	return server
}

// drawn counts the pixels of a chart that are not blank.
const drawn = `(name) => { const c = document.querySelector('[data-chart="' + name + '"] canvas'); if (!c) return 0;
	return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; }`

// pointed is what the page says of the row that the pointer is over in a chart.
const pointed = `(row, rows) => { const over = document.querySelector('[data-chart="stored"] .u-over'), box = over.getBoundingClientRect();
	over.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + (row + 0.5) / rows * box.width, clientY: box.top + 9, bubbles: true}));
	const frame = () => new Promise(requestAnimationFrame);
	return frame().then(frame).then(() => document.querySelector("[data-chart-read]").textContent); }`

// TestChartsOfTheOverview: both charts are drawn, what the pointer is over is
// what the table says, and figures that are counted anew come without a new
// page, with the table as open as it was. The policy is kept throughout.
func TestChartsOfTheOverview(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	props := overviewProps(views.RoleAnalyst)
	var now atomic.Pointer[views.OverviewProps]
	now.Store(&props)
	server := overviewServer(t, &now)
	o := openTab(browser, t, view{"wide-light", 1280, "light", `{}`})
	o.visit(t, server.URL+"/")
	for _, name := range []string{"stored", "latency"} {
		if n := evaluate[int](t, o, fmt.Sprintf("(%s)(%q)", drawn, name)); n < 2000 {
			t.Errorf("chart of what is %s: %d pixels are drawn", name, n)
		}
	}
	row := props.Charts.Rows[10]
	want := fmt.Sprintf(": %s stored; submit to stored %s, 95 %% within %s", row.Stored, row.SubmitP50, row.SubmitP95)
	if got := evaluate[string](t, o, fmt.Sprintf("(%s)(10, 24).then((text) => text.slice(text.indexOf(': ')))", pointed)); got != want {
		t.Errorf("under the pointer: got %q, want %q", got, want)
	}
	cell := `document.querySelector('[data-series] tbody tr:nth-child(11) [data-s="stored"]').textContent`
	if got := evaluate[string](t, o, cell); got != row.Stored.String() {
		t.Errorf("in the table: got %q, want %s", got, row.Stored)
	}
	later := props
	later.Charts = charts(views.SpanDay)
	later.Charts.Rows[10] = statRow(4321, time.Second)
	later.Charts.Rows[10].At = row.At
	now.Store(&later)
	changed := evaluate[string](t, o, `new Promise((done) => {
		document.querySelector('[data-keep="series"]').open = true;
		new MutationObserver((_, all) => { all.disconnect(); done(`+cell+` + " " + document.querySelector('[data-keep="series"]').open); })
			.observe(document.getElementById("overview-series"), {childList: true});
		document.querySelector("[data-rolled]").dataset.rolled = "9"; })`)
	if changed != "4,321 true" {
		t.Errorf("counted anew: the table says %q", changed)
	}
	if got := evaluate[string](t, o, fmt.Sprintf("(%s)(10, 24)", pointed)); got == "" || got == want {
		t.Errorf("under the pointer, counted anew: %q", got)
	}
	timesNearNow(t, o)
	for _, line := range o.said() {
		t.Errorf("console: %s", line)
	}
}

// timesNearNow: what is past is told in full units, what is to come is rounded.
func timesNearNow(t *testing.T, o *tab) {
	t.Helper()
	const minute, hour, day = 60, 3600, 24 * 3600
	tests := []struct {
		seconds float64
		want    string
	}{
		{0, "now"},
		{-100, "1 min. ago"},
		{-110, "1 min. ago"},
		{100, "in 2 min."},
		{80, "in 1 min."},
		{hour - 3, "in 1 hr."},
		{-hour + 20, "59 min. ago"},
		{-hour - 1, "1 hr. ago"},
		{day - 3, "in 24 hr."},
		{-day - hour, "25 hr. ago"},
		{2*day - 3, "in 2 days"},
		{3*day - 3, "in 3 days"},
		{2*day + 13*hour, "in 3 days"},
		{2*day + 11*hour, "in 2 days"},
		{7*day - minute, "in 7 days"},
		{-3*day + minute, "2 days ago"},
		{-29*day - hour, "29 days ago"},
	}
	var seconds []string
	for _, test := range tests {
		seconds = append(seconds, fmt.Sprint(test.seconds))
	}
	got := evaluate[[]string](t, o, `(() => { const times = [`+strings.Join(seconds, ",")+`].map((seconds) => {
			const time = document.createElement("time");
			time.dataset.time = "relative"; time.dateTime = new Date(Date.now() + seconds * 1000).toISOString();
			document.body.append(time);
			return time; });
		return Promise.resolve().then(() => times.map((time) => { time.remove(); return time.textContent; })); })()`)
	for i, test := range tests {
		if i >= len(got) || got[i] != test.want {
			t.Errorf("%v s from now: got %q of %q, want %q", test.seconds, got[i:min(i+1, len(got))], got, test.want)
		}
	}
}
