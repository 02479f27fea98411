package pipeline_test

import (
	"context"
	"testing"

	"rollcall/internal/export"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// sent is a form as a test sends it: who does, and what each of its fields says.
type sent struct {
	by     int64
	fields [4]int
}

// TestAFormSentTwiceIsOneFormOnly: the same form makes one thing however often
// it is sent; one that a person went back to and changed, in whichever field, or
// that another sends, makes another.
func TestAFormSentTwiceIsOneFormOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	var people [2]int64
	for i, name := range []string{"alice", "bob"} {
		people[i] = r.number(`INSERT INTO users (name, role, password_hash, created_at, password_changed_at) VALUES ($1, 'analyst', 'x', now(), now()) RETURNING id`, name)
	}
	batches := [2]int64{r.submit(store.KindBatch, "https://a.test/1", "https://a.test/2"), r.submit(store.KindBatch, "https://a.test/3", "https://a.test/4")}
	r.endWith(batches[0], 1)
	r.endWith(batches[1], 1)
	names, crons := [2]string{"x", "y"}, [2]string{"0 * * * *", "30 6 * * 1"}
	zones, formats := [2]string{"UTC", "Europe/Berlin"}, [2]export.Choices{export.Default(export.CSV), export.Default(export.Parquet)}
	for name, form := range map[string]struct {
		fields int
		send   func(context.Context, sent) (int64, error)
	}{
		"export": {3, func(ctx context.Context, s sent) (int64, error) {
			e, err := r.pipe.Export(ctx, pipeline.ExportRequest{
				Filter:  store.ItemFilter{Batch: batches[s.fields[0]], State: [2]store.ItemState{"", store.ItemFailed}[s.fields[1]]},
				Choices: formats[s.fields[2]], Token: "once",
			})
			return idOf(e, err, func(e *store.Export) int64 { return e.ID })
		}},
		"schedule": {4, func(ctx context.Context, s sent) (int64, error) {
			made, err := r.pipe.AddSchedule(ctx, pipeline.ScheduleForm{
				BatchID: batches[s.fields[0]], Name: names[s.fields[1]], Cron: crons[s.fields[2]], Zone: zones[s.fields[3]], CreatedBy: &s.by, Token: "once",
			})
			return idOf(made, err, func(s *store.Schedule) int64 { return s.ID })
		}},
		"rerun": {3, func(ctx context.Context, s sent) (int64, error) {
			made, err := r.pipe.Rerun(ctx, pipeline.Again{
				BatchID: batches[s.fields[0]], Failures: s.fields[1] == 1, Name: names[s.fields[2]], CreatedBy: &s.by, Token: "once",
			})
			return made.BatchID, err
		}},
		"submit": {2, func(ctx context.Context, s sent) (int64, error) {
			made, err := r.pipe.Submit(ctx, pipeline.Submission{
				Text: [2]string{"https://b.test/1", "https://b.test/2"}[s.fields[0]], Name: names[s.fields[1]], CreatedBy: &s.by, Token: "once",
			})
			return made.BatchID, err
		}},
		"replay": {2, func(ctx context.Context, s sent) (int64, error) {
			made, err := r.pipe.PlanReplay(ctx, pipeline.ReplayRequest{
				Picked: names[s.fields[0]], Picks: store.ReplayPicks{DeliveryIDs: []int64{int64(s.fields[1]) + 1}}, Token: "once",
			})
			return idOf(made, err, func(p *store.Replay) int64 { return p.ID })
		}},
	} {
		forms := []sent{{by: people[0]}, {by: people[1]}}
		for i := range form.fields {
			changed := sent{by: people[0]}
			changed.fields[i] = 1
			forms = append(forms, changed)
		}
		made := map[int64]sent{}
		for _, s := range forms {
			ctx := store.WithActor(t.Context(), store.Actor{UserID: s.by, Name: "somebody"})
			first, err := form.send(ctx, s)
			again, err2 := form.send(ctx, s)
			if err != nil || err2 != nil || first != again {
				t.Errorf("%s %+v: made %d and %d, %v, %v", name, s, first, again, err, err2)
			}
			if other, ok := made[first]; ok {
				t.Errorf("%s: %+v leads to what %+v made", name, s, other)
			}
			made[first] = s
		}
	}
}

// idOf is the id of what was made, if anything was.
func idOf[T any](made *T, err error, id func(*T) int64) (int64, error) {
	if err != nil {
		return 0, err
	}
	return id(made), nil
}
