package main

import (
	"fmt"
	"slices"
	"strings"
)

// text is the report for a person.
func (r *drillReport) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
Roll call: %d submitted = %d invalid + %d duplicate + %d accepted
           %d accepted = %d stored + %d failed + %d cancelled + %d outstanding
  asked:    %s
  wrong:    %d lost, %d doubled, %d with wrong content, %d out of balance, %d stuck
  charged:  %d URLs twice, %d of them called for again after a lost answer; Rollcall itself counts %d, of jobs that it knows;
            %d URLs once, and given up before the job was found
  by net:   webhook %d, poll %d, reconcile %d, replay %d, sync %d
  vendor:   %d calls (%d submit, %d status, %d list, %d more pages of results, %d other); %d jobs; deliveries: %d arrived, %d dropped, %d sent twice
  secrets:  %d rotations; refused: %d good deliveries, %d signed with a secret nobody saw, %d with one that a killed process had;
            %d secrets died with a process, %d are missing without that
  kills:    %d of %d asked for; after a kill the next URL came home within %.2f s in half of the cases, %.2f s at most;
            the process was ready again within %.2f s in half of the cases, %.2f s at most
  steps:    %s
  faults:   %s
  errors:   %d logged that the script explains, %d that it doesn't; %d things that did not go as they were told to
  leaks:    %d secrets looked for in %.1f MB of logs, rows, pages and this report, %d found
  time:     %.1f s, seed %d
`,
		r.Submitted, r.Invalid, r.Duplicate, r.Accepted, r.Accepted, r.Stored, r.Failed, r.Cancelled, r.Outstanding,
		r.Asked.text(r.Submitted), r.Lost, r.Doubled, r.WrongContent, r.Imbalance, r.Stuck,
		r.ChargedTwice, r.LostAnswer, r.ChargedCounted, r.ChargedGivenUp,
		r.ByNet.Webhook, r.ByNet.Poll, r.ByNet.Reconcile, r.ByNet.Replay, r.ByNet.Sync,
		r.VendorCalls.Total, r.VendorCalls.Submit, r.VendorCalls.Status, r.VendorCalls.List, r.VendorCalls.Results, r.VendorCalls.other(),
		r.Sandbox.Jobs, r.Sandbox.Delivered, r.Sandbox.Dropped, r.Sandbox.Duplicated,
		r.Rotations, r.RefusedValid, r.RefusedSecretLost, r.RefusedKilled, r.SecretsKilled, r.SecretsMissing,
		r.Kills, r.KillsAsked, r.RecoverySeconds.P50, r.RecoverySeconds.Max, r.ReadySeconds.P50, r.ReadySeconds.Max,
		r.Steps.text(), countsText(r.Faults), r.ErrorsExplained, r.ErrorsUnexplained, r.Misbehaved,
		r.Leaks.Secrets, r.Leaks.SearchedMB, r.Leaks.Found, r.Seconds, r.Seed)
	r.writeVerdict(&b)
	return b.String()
}

// writeVerdict says whether all is well, and what isn't or is worth a look.
func (r *drillReport) writeVerdict(b *strings.Builder) {
	verdict := "All is well.\n"
	if !r.OK {
		verdict = "NOT well.\n"
	}
	b.WriteString(verdict)
	writeSome(b, "  ", r.Problems)
	writeSome(b, "  note: ", r.Notes)
}

func writeSome(b *strings.Builder, before string, lines []string) {
	for _, line := range lines[:min(len(lines), problemsShown)] {
		b.WriteString(before + line + "\n")
	}
	if rest := len(lines) - problemsShown; rest > 0 {
		fmt.Fprintf(b, "%sand %d more\n", before, rest)
	}
}

// text says why not as many URLs are accepted as were asked for.
func (a askedURLs) text(submitted int64) string {
	text := fmt.Sprintf("%d URLs: %d in %d lists, which have %d odd or failing pages, %d lines that are no URL and %d that come twice besides",
		a.URLs, a.Listed, a.Lists, a.Odd, a.Invalid, a.Duplicate)
	if a.Crawls > 0 {
		found := submitted - int64(a.Listed+a.Odd+a.Invalid+a.Duplicate)
		text += fmt.Sprintf(";\n            crawls in place of the other %d: %d, pages that they found: %d", a.URLs-a.Listed, a.Crawls, found)
	}
	return text
}

func (s stepCount) text() string {
	if !s.Compiled {
		return "not compiled in (go build -tags drill)"
	}
	return fmt.Sprintf("%d seen; servers died at %d of them, %d times in all", s.Seen, s.Killed, s.Kills)
}

func countsText(counts map[string]int) string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(parts, ", ")
}
