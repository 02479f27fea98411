package pipeline_test

import (
	"net/http"
	"strings"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestUnreadableDeliveryIsReadAgain: what was signed well and could not be read
// is taken up once the settings name its fields, and stays what it is before.
func TestUnreadableDeliveryIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: asleep})
	job := r.openJobs(1)[0]
	hook := r.number(`INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('0123456789abcdef', 'extract_completed', 'https://a.example/', 'live', now(), now()) RETURNING id`)
	r.addSecret(hook, 1, testSecret)
	body := []byte(strings.Replace(string(envelopeFor("extract_completed", r.vendorID(job))), `"job_id"`, `"number"`, 1))
	if a := r.pipe.Receive(t.Context(), signedDelivery("0123456789abcdef", "extract_completed", testSecret, body)); a.Status != http.StatusBadRequest {
		t.Fatalf("got %+v, want 400", a)
	}
	eventually(t, "it to be kept", func() bool { return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'unreadable'`) == 1 })
	id := r.number(`SELECT id FROM deliveries`)
	if got, err := r.pipe.TakeUpAgain(t.Context(), []int64{id}); got != (pipeline.TakenUp{Refused: 1}) || err != nil {
		t.Errorf("under the same settings: got %+v, %v", got, err)
	}
	set := r.newPipeline(setup{pipeline: func(c *pipeline.Config) {
		c.OnlySubmit, c.Fields = true, pipeline.FieldSettings{JobID: []string{"data.number"}}
	}})
	for _, want := range []pipeline.TakenUp{{Recovered: 1}, {Already: 1}} {
		if got, err := set.TakeUpAgain(t.Context(), []int64{id}); got != want || err != nil {
			t.Errorf("once the field is set: got %+v, %v, want %+v", got, err, want)
		}
	}
	eventually(t, "its job to settle", func() bool {
		return r.text(`SELECT max(settle_net) FROM jobs WHERE state = 'settled'`) == string(store.NetWebhook)
	})
}
