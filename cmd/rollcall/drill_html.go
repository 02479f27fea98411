package main

import (
	"fmt"
	"html/template"
	"os"
	"time"
)

// writeHTML writes the report as one page without scripts or anything to fetch.
func (r *drillReport) writeHTML(path string) error {
	page, err := template.New("drill").Funcs(template.FuncMap{"since": r.since, "secs": secs}).Parse(drillPage)
	if err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	file, err := os.Create(path) //nolint:gosec // The caller names it.
	if err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	err = page.Execute(file, map[string]any{"R": r, "Timeline": r.timeline, "Kills": r.kills, "Steps": r.steps})
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	return nil
}

// since is a moment as seconds since the drill began.
func (r *drillReport) since(at time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return fmt.Sprintf("%.1f s", at.Sub(r.began).Seconds())
}

// secs is a length, or a dash where there is none.
func secs(n float64) string {
	if n < 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f s", n)
}

const drillPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Rollcall drill, seed {{.R.Seed}}</title>
<style>
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0 2rem}th,td{text-align:left;padding:.15rem .8rem .15rem 0;border-bottom:1px solid #8884;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}.ok{color:#2b8a3e}.bad{color:#c92a2a}.scroll{overflow-x:auto}
</style></head><body>
<h1>Drill with seed {{.R.Seed}}: {{if .R.OK}}<span class="ok">all is well</span>{{else}}<span class="bad">not well</span>{{end}}</h1>
{{with .R.Problems}}<h2>Problems</h2><ul>{{range .}}<li class="bad">{{.}}</li>{{end}}</ul>{{end}}
<h2>Roll call</h2>
<table>
<tr><th>submitted</th><td class="n">{{.R.Submitted}}</td><td>= {{.R.Invalid}} invalid + {{.R.Duplicate}} duplicate + {{.R.Accepted}} accepted</td></tr>
<tr><th>accepted</th><td class="n">{{.R.Accepted}}</td><td>= {{.R.Stored}} stored + {{.R.Failed}} failed + {{.R.Cancelled}} cancelled + {{.R.Outstanding}} outstanding</td></tr>
<tr><th>lost</th><td class="n">{{.R.Lost}}</td><td>submitted, or brought by the vendor, and not here</td></tr>
<tr><th>doubled</th><td class="n">{{.R.Doubled}}</td><td>here more than once</td></tr>
<tr><th>wrong content</th><td class="n">{{.R.WrongContent}}</td><td>stored with other bytes than the vendor's books have</td></tr>
<tr><th>imbalance</th><td class="n">{{.R.Imbalance}}</td><td>counters that don't add up, or differ from their rows</td></tr>
<tr><th>stuck</th><td class="n">{{.R.Stuck}}</td><td>not ended by the deadline</td></tr>
<tr><th>charged twice</th><td class="n">{{.R.ChargedTwice}}</td><td>requests that the vendor charged again</td></tr>
<tr><th>refused though valid</th><td class="n">{{.R.RefusedValid}}</td><td>deliveries; {{.R.RefusedSecretLost}} more were signed with a secret nobody saw; {{.R.Rotations}} rotations</td></tr>
<tr><th>errors logged</th><td class="n">{{.R.ErrorsUnexplained}}</td><td>that no fault of the script explains; {{.R.ErrorsExplained}} that one does</td></tr>
<tr><th>stored by net</th><td class="n">{{.R.Stored}}</td><td>webhook {{.R.ByNet.Webhook}}, poll {{.R.ByNet.Poll}}, reconcile {{.R.ByNet.Reconcile}}, replay {{.R.ByNet.Replay}}, sync {{.R.ByNet.Sync}}</td></tr>
<tr><th>vendor calls</th><td class="n">{{.R.VendorCalls.Total}}</td><td>{{.R.VendorCalls.Submit}} submit, {{.R.VendorCalls.Status}} status, {{.R.VendorCalls.List}} list, {{.R.VendorCalls.Results}} more pages of results</td></tr>
<tr><th>vendor's books</th><td class="n">{{.R.Sandbox.Jobs}}</td><td>jobs; deliveries: {{.R.Sandbox.Delivered}} arrived, {{.R.Sandbox.Dropped}} dropped, {{.R.Sandbox.Duplicated}} sent twice; URLs: {{.R.Sandbox.Completed}} completed, {{.R.Sandbox.Failed}} failed, {{.R.Sandbox.Charged}} charged</td></tr>
<tr><th>kills</th><td class="n">{{.R.Kills}}</td><td>next URL home after {{secs .R.RecoverySeconds.P50}} in the middle, {{secs .R.RecoverySeconds.Max}} at most; process ready after {{secs .R.ReadySeconds.P50}}, {{secs .R.ReadySeconds.Max}}</td></tr>
<tr><th>time</th><td class="n">{{.R.Seconds}}</td><td>seconds</td></tr>
</table>
<h2>Named steps</h2>
{{if .R.Steps.Compiled}}<p>{{.R.Steps.Seen}} seen, a server died at {{.R.Steps.Killed}} of them.</p>
<div class="scroll"><table><tr><th>step</th><th>kills</th><th>longest recovery</th></tr>
{{range .Steps}}<tr><td>{{.Name}}</td><td class="n">{{.Kills}}</td><td class="n">{{if .Kills}}{{secs .LongestRecovery}}{{end}}</td></tr>
{{end}}</table></div>{{else}}<p>Not compiled in; build with -tags drill.</p>{{end}}
<h2>Kills</h2>
<div class="scroll"><table><tr><th>at</th><th>process</th><th>how</th><th>step</th><th>next URL home</th><th>ready again</th></tr>
{{range .Kills}}<tr><td class="n">{{since .At}}</td><td>{{.Child}}</td><td>{{.How}}</td><td>{{.Step}}</td><td class="n">{{secs .Recovery}}</td><td class="n">{{secs .Ready}}</td></tr>
{{end}}</table></div>
<h2>Time line</h2>
<div class="scroll"><table><tr><th>from</th><th>to</th><th>fault</th><th></th></tr>
{{range .Timeline}}<tr><td class="n">{{since .From}}</td><td class="n">{{since .To}}</td><td>{{.Kind}}</td><td>{{.Detail}}</td></tr>
{{end}}</table></div>
</body></html>
`
