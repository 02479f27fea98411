package pipeline

import (
	"context"
	"fmt"
	"time"

	"rollcall/store"
)

const (
	// reconcileSingly bounds the jobs asked about one by one in a run.
	reconcileSingly = 200
	// openGroup is how many open jobs are looked at by one statement.
	openGroup = 500
	// singlyAfter is the setting that says where the last run ended.
	singlyAfter = "reconcile_singly_after"
)

// singly wakes open jobs that the lists did not show: those made before the
// window, those the lists lost, and those whose list could not be read. Settle
// asks about each by itself. A run goes on where the one before ended, and then
// from the beginning, so that with more jobs than one run asks about each gets
// its turn.
func (r *reconciling) singly(ctx context.Context) error {
	text, err := r.store.Setting(ctx, singlyAfter)
	if err != nil {
		return err
	}
	after := parsePlace(text)
	jobs, err := r.unshown(ctx, after, r.young, reconcileSingly)
	if err != nil {
		return err
	}
	if left := reconcileSingly - len(jobs); left > 0 && after != (store.Key{}) {
		by := after.At
		if by.After(r.young) {
			by = r.young
		}
		first, err := r.unshown(ctx, store.Key{}, by, left)
		if err != nil {
			return err
		}
		jobs = append(jobs, first...)
	}
	if err := r.wakeSingly(ctx, jobs); err != nil {
		return err
	}
	return r.notePlace(ctx, text, jobs)
}

// unshown lists up to n open jobs, accepted by the time, that the lists did not
// show, from after the key on. Those taken count as shown from then on.
func (r *reconciling) unshown(ctx context.Context, from store.Key, by time.Time, n int) ([]store.KnownJob, error) {
	var out []store.KnownJob
	for {
		open, err := r.store.OpenJobs(ctx, by, from, openGroup)
		if err != nil {
			return nil, err
		}
		for _, j := range open {
			from = placeOf(j)
			if _, shown := r.open[j.ID]; shown {
				continue
			}
			r.open[j.ID] = false
			if out = append(out, j); len(out) == n {
				return out, nil
			}
		}
		if len(open) < openGroup {
			return out, nil
		}
	}
}

// wakeSingly wakes the jobs, each with what is known of its list.
func (r *reconciling) wakeSingly(ctx context.Context, jobs []store.KnownJob) error {
	r.run.Singly = len(jobs)
	var lost, unknown []int64
	for _, j := range jobs {
		if r.unread[j.Kind] {
			unknown = append(unknown, j.ID)
		} else {
			lost = append(lost, j.ID)
		}
	}
	if err := r.wakeFor(ctx, lost, "open here and not in the vendor's lists"); err != nil {
		return err
	}
	return r.wakeFor(ctx, unknown, "open here, and the vendor's list could not be read")
}

// notePlace writes down where the run ended, unless it asked about all.
func (r *reconciling) notePlace(ctx context.Context, was string, jobs []store.KnownJob) error {
	is := ""
	if len(jobs) == reconcileSingly {
		is = formatPlace(placeOf(jobs[len(jobs)-1]))
	}
	if is == was {
		return nil
	}
	return r.store.SetSetting(ctx, singlyAfter, is, r.now())
}

func placeOf(j store.KnownJob) store.Key { return store.Key{At: *j.AcceptedAt, ID: j.ID} }

func formatPlace(k store.Key) string {
	return fmt.Sprintf("%s %d", k.At.UTC().Format(time.RFC3339Nano), k.ID)
}

// parsePlace reads what formatPlace wrote; anything else is the beginning.
func parsePlace(text string) store.Key {
	var at string
	var k store.Key
	if _, err := fmt.Sscanf(text, "%s %d", &at, &k.ID); err != nil {
		return store.Key{}
	}
	var err error
	if k.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return store.Key{}
	}
	return k
}
