package main

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"time"
)

// writeHTML writes the report as one page without scripts or anything to fetch.
func (r *drillReport) writeHTML(path string) error {
	file, err := os.Create(path) //nolint:gosec // The caller names it.
	if err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	if err := errors.Join(r.html(file), file.Close()); err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	return nil
}

func (r *drillReport) html(out io.Writer) error {
	page, err := template.New("drill").Funcs(template.FuncMap{"since": r.since, "secs": secs}).Parse(drillPage)
	if err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	return page.Execute(out, map[string]any{"R": r, "Timeline": r.timeline, "Kills": r.kills, "Steps": r.steps, "Asked": r.Asked.text(r.Submitted)})
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
{{with .R.Notes}}<h2>Worth a look</h2><ul>{{range .}}<li>{{.}}</li>{{end}}</ul>{{end}}
<h2>Roll call</h2>
<table>
<tr><th>submitted</th><td class="n">{{.R.Submitted}}</td><td>= {{.R.Invalid}} invalid + {{.R.Duplicate}} duplicate + {{.R.Accepted}} accepted</td></tr>
<tr><th>asked for</th><td class="n">{{.R.Asked.URLs}}</td><td>{{.Asked}}</td></tr>
<tr><th>accepted</th><td class="n">{{.R.Accepted}}</td><td>= {{.R.Stored}} stored + {{.R.Failed}} failed + {{.R.Cancelled}} cancelled + {{.R.Outstanding}} outstanding</td></tr>
<tr><th>lost</th><td class="n">{{.R.Lost}}</td><td>submitted, or brought by the vendor, and not here</td></tr>
<tr><th>doubled</th><td class="n">{{.R.Doubled}}</td><td>here more than once</td></tr>
<tr><th>wrong content</th><td class="n">{{.R.WrongContent}}</td><td>stored with other bytes than the vendor's books have</td></tr>
<tr><th>imbalance</th><td class="n">{{.R.Imbalance}}</td><td>counters that don't add up, or differ from their rows</td></tr>
<tr><th>stuck</th><td class="n">{{.R.Stuck}}</td><td>not ended by the deadline</td></tr>
<tr><th>charged twice</th><td class="n">{{.R.ChargedTwice}}</td><td>URLs that the vendor charged again, {{.R.LostAnswer}} of them called for again after a lost answer; Rollcall itself counts {{.R.ChargedCounted}}, of jobs that it knows; {{.R.ChargedGivenUp}} URLs were charged once, and given up before the job was found</td></tr>
<tr><th>refused though valid</th><td class="n">{{.R.RefusedValid}}</td><td>deliveries; {{.R.RefusedSecretLost}} more were signed with a secret nobody saw, {{.R.RefusedKilled}} with one that died with a killed process; {{.R.Rotations}} rotations</td></tr>
<tr><th>secrets missing</th><td class="n">{{.R.SecretsMissing}}</td><td>not here though nothing kept Rollcall from storing them; {{.R.SecretsKilled}} more died with a process, or when the database or the disk was struck</td></tr>
<tr><th>errors logged</th><td class="n">{{.R.ErrorsUnexplained}}</td><td>that no fault of the script explains; {{.R.ErrorsExplained}} that one does</td></tr>
<tr><th>misbehaved</th><td class="n">{{.R.Misbehaved}}</td><td>things that did not go as they were told to: ends of processes, pages, parts of the script</td></tr>
<tr><th>leaks</th><td class="n">{{.R.Leaks.Found}}</td><td>{{.R.Leaks.Secrets}} secrets looked for in {{printf "%.1f" .R.Leaks.SearchedMB}} MB of logs, rows, pages and this report</td></tr>
<tr><th>stored by net</th><td class="n">{{.R.Stored}}</td><td>webhook {{.R.ByNet.Webhook}}, poll {{.R.ByNet.Poll}}, reconcile {{.R.ByNet.Reconcile}}, replay {{.R.ByNet.Replay}}, sync {{.R.ByNet.Sync}}</td></tr>
<tr><th>vendor calls</th><td class="n">{{.R.VendorCalls.Total}}</td><td>{{.R.VendorCalls.Submit}} submit, {{.R.VendorCalls.Status}} status, {{.R.VendorCalls.List}} list, {{.R.VendorCalls.Results}} more pages of results</td></tr>
<tr><th>vendor's books</th><td class="n">{{.R.Sandbox.Jobs}}</td><td>jobs; deliveries: {{.R.Sandbox.Delivered}} arrived, {{.R.Sandbox.Dropped}} dropped, {{.R.Sandbox.Duplicated}} sent twice; URLs: {{.R.Sandbox.Completed}} completed, {{.R.Sandbox.Failed}} failed, {{.R.Sandbox.Charged}} charged</td></tr>
<tr><th>kills</th><td class="n">{{.R.Kills}}</td><td>of {{.R.KillsAsked}} asked for; after a kill the next URL came home within {{secs .R.RecoverySeconds.P50}} in half of the cases, {{secs .R.RecoverySeconds.Max}} at most; the process was ready again within {{secs .R.ReadySeconds.P50}} in half of the cases, {{secs .R.ReadySeconds.Max}} at most</td></tr>
<tr><th>time</th><td class="n">{{.R.Seconds}}</td><td>seconds</td></tr>
</table>
<h2>Named steps</h2>
{{if .R.Steps.Compiled}}<p>{{.R.Steps.Seen}} seen; servers died at {{.R.Steps.Killed}} of them, {{.R.Steps.Kills}} times in all.</p>
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
