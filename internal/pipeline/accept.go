package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// acceptGroup is how many calls that the vendor accepted share a commit at most.
const acceptGroup = 256

// accepted is the vendor's yes, of whatever kind.
type accepted struct {
	id, status string
	invalid    geonode.InvalidURLs
	date       time.Time
}

// accepting is a vendor's yes on its way into a commit.
type accepting struct {
	store.Acceptance
	failed bool // The commit it was in did not happen.
}

// newAcceptances makes calls that are accepted at the same time share a commit.
func newAcceptances(p *Pipeline) *groupCommit[*accepting] {
	return &groupCommit[*accepting]{
		what: "accepted call", most: acceptGroup, committers: 1, log: p.log,
		size:    func(a *accepting) int { return len(a.InvalidURLs) },
		compare: func(a, b *accepting) int { return cmp.Compare(a.JobID, b.JobID) },
		write:   p.acceptGroup, queue: make(chan waiting[*accepting], groupQueue),
	}
}

// acceptGroup records answers in one transaction. When that fails, each is left
// to who waits for it: those of a group that one row spoils are not to wait for
// one another.
func (p *Pipeline) acceptGroup(ctx context.Context, group []*accepting) error {
	all := make([]*store.Acceptance, len(group))
	for i, a := range group {
		all[i] = &a.Acceptance
	}
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.Shared(ctx); err != nil {
			return err
		}
		return p.accept(ctx, tx, all)
	})
	if err != nil {
		p.log.WarnContext(ctx, "answers not recorded together, each is tried alone", slog.Int("answers", len(group)), slog.Any("error", err))
		for _, a := range group {
			a.failed = true
		}
		return nil
	}
	p.meetHeld(ctx, all)
	return nil
}

// accept records answers, and adds a task for each job that is to be cancelled.
func (p *Pipeline) accept(ctx context.Context, tx store.Tx, all []*store.Acceptance) error {
	if err := tx.AcceptJobs(ctx, all); err != nil {
		return err
	}
	var cancel []int64
	for _, a := range all {
		if a.Cancel {
			cancel = append(cancel, a.JobID)
		}
	}
	return p.queue.cancel(ctx, tx, cancel)
}

// meetHeld looks for webhooks that came before the ids were known. It does so
// after their commit, and receive does the same from its side: whichever commits
// later sees the other. What fails here the sweep repeats.
func (p *Pipeline) meetHeld(ctx context.Context, all []*store.Acceptance) {
	var ids []string
	for _, a := range all {
		if a.Taken {
			ids = append(ids, a.VendorJobID)
		}
	}
	if err := p.claimHeld(ctx, ids); err != nil {
		p.log.WarnContext(ctx, "held events not looked at", slog.Any("error", err))
	}
}

// recordAccepted writes down the vendor's answer to a call, in a commit that it
// shares or, if that fails, in its own.
func (p *Pipeline) recordAccepted(ctx context.Context, job *store.Job, yes accepted) error {
	p.hearClock(ctx, yes.date)
	together := &accepting{Acceptance: p.acceptance(ctx, job, yes)}
	err := p.acceptances.commit(ctx, together)
	// The wait for that may have taken all of the time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err == nil && !together.failed {
		return p.recorded(ctx, &together.Acceptance)
	}
	// Its own copy: the group may still be under way.
	err = p.recordAlone(ctx, p.acceptance(ctx, job, yes), func(context.Context, store.Tx) error { return nil })
	if errors.Is(err, store.ErrTaken) {
		return p.taken(ctx, job, yes.id)
	}
	return err
}

// recordAlone records one answer in a commit of its own, if what is looked at
// before in that commit allows it.
func (p *Pipeline) recordAlone(ctx context.Context, a store.Acceptance, allowed func(context.Context, store.Tx) error) error {
	one := []*store.Acceptance{&a}
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := allowed(ctx, tx); err != nil {
			return err
		}
		return p.accept(ctx, tx, one)
	})
	if err != nil {
		return fmt.Errorf("record vendor job of job %d: %w", a.JobID, err)
	}
	p.meetHeld(ctx, one)
	return p.recorded(ctx, &a)
}

// recordAdopted writes down a job that was found for a lost call.
func (p *Pipeline) recordAdopted(ctx context.Context, job *store.Job, found accepted) error {
	a := p.acceptance(ctx, job, found)
	a.Adopted = true
	err := p.recordAlone(ctx, a, func(ctx context.Context, tx store.Tx) error { return uncontested(ctx, tx, job) })
	if errors.Is(err, store.ErrTaken) || errors.Is(err, errContested) {
		return river.JobSnooze(contestedGap)
	}
	return err
}

func (p *Pipeline) acceptance(ctx context.Context, job *store.Job, yes accepted) store.Acceptance {
	now := p.now()
	return store.Acceptance{
		JobID: job.ID, CallNo: job.CallNo, VendorJobID: yes.id, Account: p.cfg.Account, Status: store.CleanText(yes.status),
		InvalidURLs: invalidList(yes.invalid), At: now, NextPollAt: p.firstPoll(ctx, now),
	}
}

// recorded notes that a call went through.
func (p *Pipeline) recorded(ctx context.Context, a *store.Acceptance) error {
	if !a.Taken {
		p.log.WarnContext(ctx, "answer came after the job moved on", slog.Int64("job_id", a.JobID))
		return nil
	}
	return p.gates.passed(ctx, store.GateSubmit)
}

// invalidList keeps the URLs that the vendor set aside as a JSON list of text.
func invalidList(u geonode.InvalidURLs) json.RawMessage {
	if len(u.List) == 0 {
		return nil
	}
	urls := make([]string, len(u.List))
	for i, one := range u.List {
		urls[i] = store.CleanText(one.URL)
	}
	encoded, err := json.Marshal(urls)
	if err != nil {
		return nil // Cannot happen: a list of strings always encodes.
	}
	return encoded
}

// errContested reports a job found for a lost call that may be the job of an
// equal call under way.
var errContested = errors.New("an equal call is under way")

// uncontested looks once more, where the adoption is recorded, for an equal
// call under way. A claim is committed before its call, so whoever's job was
// found is either seen here or has its id recorded, which is unique.
func uncontested(ctx context.Context, tx store.Tx, job *store.Job) error {
	if err := tx.LockHash(ctx, job.RequestHash); err != nil {
		return err
	}
	n, err := tx.CallingWithHash(ctx, job.RequestHash)
	if err == nil && n > 0 {
		return errContested
	}
	return err
}
