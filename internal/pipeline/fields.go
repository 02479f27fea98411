package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/tidwall/gjson"

	"rollcall/internal/geonode"
)

// FieldSettings name where a delivery's body holds what is needed of it, as
// dotted paths in the order they are tried.
type FieldSettings struct {
	JobID, Event, DeliveryID []string
	// The same in the vendor's report at /v1/usage: how many requests are left,
	// how many there were, and how many were used.
	QuotaLeft, QuotaLimit, QuotaUsed []string
}

func (f FieldSettings) withDefaults() FieldSettings {
	if len(f.JobID) == 0 {
		f.JobID = []string{"data.job_id", "job_id"}
	}
	if len(f.Event) == 0 {
		f.Event = []string{"event", "event_type"}
	}
	if len(f.DeliveryID) == 0 {
		f.DeliveryID = []string{"delivery_id", "id"}
	}
	if len(f.QuotaLeft) == 0 {
		f.QuotaLeft = []string{"tokens.remaining", "requests.remaining", "quota.remaining", "credits.remaining", "tokens_remaining", "requests_remaining"}
	}
	if len(f.QuotaLimit) == 0 {
		f.QuotaLimit = []string{"tokens.limit", "requests.limit", "quota.limit", "credits.limit", "tokens_limit", "requests_limit"}
	}
	if len(f.QuotaUsed) == 0 {
		f.QuotaUsed = []string{"tokens.used", "requests.used", "quota.used", "credits.used", "tokens_used", "requests_used"}
	}
	return f
}

// envelope is what is read of a delivery's body. Its content is not: a
// webhook is a hint, and the job is fetched.
type envelope struct{ jobID, event, deliveryID string }

// maxDepth of a path keeps a setting from walking far.
const maxDepth = 8

// readObject reads a text that is a JSON object. It is read twice: gjson takes
// what is no JSON for some, and encoding/json, which doesn't, would read each
// part again for each member in it.
func readObject(text []byte) (gjson.Result, bool) {
	if !json.Valid(text) {
		return gjson.Result{}, false
	}
	root := gjson.ParseBytes(text)
	return root, root.IsObject()
}

// memberOf is an object's member; of two with one name the last counts. It keeps
// nothing of the others: bodies are read before anybody knows who sent them.
func memberOf(value gjson.Result, name string) gjson.Result {
	var found gjson.Result
	if value.IsObject() {
		value.ForEach(func(key, member gjson.Result) bool {
			if key.Str == name {
				found = member
			}
			return true
		})
	}
	return found
}

// readEnvelope finds the job and event of a verified body.
func (f FieldSettings) readEnvelope(body []byte) (envelope, error) {
	root, ok := readObject(body)
	if !ok {
		return envelope{}, errors.New("the body is not a JSON object")
	}
	e := envelope{jobID: firstText(root, f.JobID), event: firstText(root, f.Event), deliveryID: firstText(root, f.DeliveryID)}
	if e.jobID == "" {
		return e, fmt.Errorf("no job id at %s", strings.Join(f.JobID, " or "))
	}
	if err := geonode.ValidJobID(e.jobID); err != nil {
		return e, fmt.Errorf("the job id cannot be one: %w", err)
	}
	return e, nil
}

// firstText is the first path that leads to a text or a whole number.
func firstText(root gjson.Result, paths []string) string {
	for _, path := range paths {
		if s := textAt(root, strings.SplitN(path, ".", maxDepth)); s != "" {
			return s
		}
	}
	return ""
}

func textAt(node gjson.Result, path []string) string {
	for _, name := range path {
		node = memberOf(node, name)
	}
	switch node.Type {
	case gjson.String:
		return strings.TrimSpace(strings.ToValidUTF8(node.Str, "\uFFFD"))
	case gjson.Number:
		return node.Raw
	case gjson.Null, gjson.False, gjson.True, gjson.JSON:
	}
	return ""
}

// timestampOf reads the member that one signature form signs.
func timestampOf(body []byte) string {
	root, _ := readObject(body)
	return firstText(root, []string{"timestamp"})
}

// JSONContentType reports whether a Content-Type says JSON.
func JSONContentType(value string) bool {
	kind, _, err := mime.ParseMediaType(value)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
