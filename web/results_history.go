package web

import (
	"context"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// countHistory counts what the history of a result has.
func (s *Server) countHistory(ctx context.Context, r shownResult, p *views.ResultProps) error {
	versions, err := s.store.CountResultVersions(ctx, r.ItemID)
	if err != nil {
		return err
	}
	same, err := s.store.CountSame(ctx, r.ResultFacts)
	if err != nil {
		return err
	}
	p.VersionsTotal, p.SameTotal = capped(versions), capped(same)
	return nil
}

// fillHistory lists the versions of a result and the other results of its page.
func (s *Server) fillHistory(c echo.Context, r shownResult, p *views.ResultProps) error {
	ctx := c.Request().Context()
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	present, err := s.store.PageResult(ctx, r.ItemID)
	if err != nil {
		return err
	}
	versions, err := s.store.PageResultVersions(ctx, r.ItemID)
	if err != nil {
		return err
	}
	p.Versions = versionRows(present, versions)
	rows, err := s.store.PageSame(ctx, r.ResultFacts, from, pageRows+1)
	if err != nil {
		return err
	}
	rows, more := cut(rows, pageRows)
	last := ""
	for i := range rows {
		p.Same = append(p.Same, sameRow(&rows[i]))
		last = keyCursor(rows[i].StoredAt, rows[i].ItemID)
	}
	p.SamePager = pager(c, cursorParam, more, last)
	return nil
}

// versionRows are the present version and the earlier ones, latest first.
func versionRows(present *store.ResultFacts, earlier []store.ResultVersion) []views.VersionRow {
	if len(earlier) == 0 {
		return nil
	}
	rows := []views.VersionRow{{
		Version: present.Version, Present: true, StoredAt: present.StoredAt, Net: string(present.Net), Title: present.Title,
		Bytes: max(0, present.MarkdownSize) + max(0, present.HTMLSize),
	}}
	for i := range earlier {
		v := &earlier[i]
		rows = append(rows, views.VersionRow{
			Version: v.Version, StoredAt: v.StoredAt, ReplacedAt: v.ReplacedAt, Net: string(v.Net), Title: v.Title, Bytes: v.Bytes,
		})
	}
	return rows
}

func sameRow(r *store.SameRow) views.SameRow {
	return views.SameRow{
		ItemID: idText(r.ItemID), URL: r.URL, BatchID: idText(r.BatchID), BatchName: r.BatchName, StoredAt: r.StoredAt,
		Status: orZero(r.HTTPStatus), Mark: string(r.Mark), Bytes: r.Bytes, Equal: r.Equal,
	}
}

// provenance is the way of a result, oldest first: from the form to what is
// stored now, with the deliveries and the nets that had a part in it.
func (s *Server) provenance(ctx context.Context, r shownResult) ([]views.TimelineEvent, error) {
	times, err := s.store.PageResultTimes(ctx, r.ItemID, r.JobID)
	if err != nil {
		return nil, err
	}
	events := []views.TimelineEvent{{
		At: times.Submitted, Kind: "intended", Title: "Submitted", Detail: views.Textf(ctx, "in %s", r.BatchName), Path: "/batches/" + idText(r.BatchID),
	}}
	if times.VendorEnded != nil {
		events = append(events, views.TimelineEvent{At: *times.VendorEnded, Kind: "asked", Title: "Done at the vendor", Detail: views.Textf(ctx, "as the vendor says")})
	}
	if r.JobID != nil {
		story, err := s.store.PageJob(ctx, *r.JobID)
		if err != nil {
			return nil, err
		}
		earlier, err := s.earlierMoments(ctx, r.ItemID, *r.JobID)
		if err != nil {
			return nil, err
		}
		events = append(append(events, earlier...), jobMoments(ctx, story)...)
	} else if times.Called != nil {
		events = append(events, views.TimelineEvent{At: *times.Called, Kind: "called", Title: "Vendor called", Detail: views.Textf(ctx, "to answer at once")})
	}
	stored, err := s.storedMoments(ctx, r)
	events = append(events, stored...)
	slices.SortStableFunc(events, byTime)
	return events, err
}

// jobMoments are what happened to the job that brought a result. What it stored
// in all is left out: the result says when it was itself. What is told of its
// other URLs says that it is.
func jobMoments(ctx context.Context, story *store.JobStory) []views.TimelineEvent {
	own := *story
	own.Deliveries, own.Stored = nil, nil
	events := timeline(ctx, &own)
	for i := range events {
		ofJob(ctx, &events[i])
	}
	told := false
	for i := range story.Deliveries {
		d := &story.Deliveries[i]
		e := views.TimelineEvent{
			At: d.ReceivedAt, Kind: "delivery", Net: string(store.NetWebhook), Title: verdictTitle(ctx, d.Verdict),
			Detail: deliveryWords(ctx, d), Path: "/deliveries/" + idText(d.ID),
		}
		if !told && d.Verdict == store.VerdictAccepted {
			told, e.Title = true, deliveryTitle(&story.Job, d)
		}
		events = append(events, e)
	}
	return events
}

// ofJob words what happened to a job as what happened to all its URLs, or to
// those that didn't come home by it.
func ofJob(ctx context.Context, e *views.TimelineEvent) {
	switch e.Title {
	case settledTitle:
		e.Title = "Its job settled"
		if e.Detail != "" {
			e.Detail = views.Textf(ctx, "of all its URLs: %s", e.Detail)
		}
	case retriedTitle:
		e.Title = "Other URLs of its job tried again"
	case againTitle:
		e.Title = "Other URLs of its job submitted again by a person"
	}
}

// deliveryTitle says whether a delivery told of the job's end: when polling or
// reconciling had found it before, it only came later.
func deliveryTitle(job *store.Job, d *store.Delivery) string {
	if job.EndedAt != nil && orZero(job.SettleNet) != store.NetWebhook && !d.ReceivedAt.Before(*job.EndedAt) {
		return "Its delivery, which came later"
	}
	return "The delivery that told of it"
}

// earlierMoments are the jobs that carried an item before the one that brought
// its result.
func (s *Server) earlierMoments(ctx context.Context, itemID, jobID int64) ([]views.TimelineEvent, error) {
	story, err := s.store.PageItem(ctx, itemID)
	if err != nil {
		return nil, err
	}
	var events []views.TimelineEvent
	for i := range story.Lineage {
		step := &story.Lineage[i]
		if step.JobID >= jobID {
			continue
		}
		job, path := idText(step.JobID), "/jobs/"+idText(step.JobID)
		asked := views.Textf(ctx, "Asked for by job %s", job)
		events = append(events, views.TimelineEvent{At: step.CreatedAt, Kind: "intended", Title: asked, Path: path})
		if step.EndedAt != nil && step.Outcome != "" {
			none, said := views.Textf(ctx, "No result from job %s", job), strings.TrimSpace(step.ErrorCode+" "+step.ErrorMessage)
			events = append(events, views.TimelineEvent{At: *step.EndedAt, Kind: "asked", Title: none, Detail: said, Path: path})
		}
	}
	return events, nil
}

// deliveryWords says what a delivery was, and what verified it.
func deliveryWords(ctx context.Context, d *store.Delivery) string {
	if d.SecretVersion == nil {
		return views.Textf(ctx, "%s, answered %d", d.EventType, d.Status)
	}
	return views.Textf(ctx, "%s, answered %d, verified with version %d of the secret", d.EventType, d.Status, *d.SecretVersion)
}

// storedMoments are when each version was stored.
func (s *Server) storedMoments(ctx context.Context, r shownResult) ([]views.TimelineEvent, error) {
	present, err := s.store.PageResult(ctx, r.ItemID)
	if err != nil {
		return nil, err
	}
	earlier, err := s.store.PageResultVersions(ctx, r.ItemID)
	if err != nil {
		return nil, err
	}
	rows := versionRows(present, earlier)
	if rows == nil {
		return []views.TimelineEvent{{At: present.StoredAt, Kind: "stored", Net: string(present.Net), Title: "Stored"}}, nil
	}
	var events []views.TimelineEvent
	for _, row := range slices.Backward(rows) {
		e := views.TimelineEvent{At: row.StoredAt, Kind: "stored", Net: row.Net, Title: "Stored", Detail: views.Textf(ctx, "version %d", row.Version)}
		if len(events) > 0 {
			// A replaced result keeps the net of the first: a person replaced it.
			e.Net, e.Title = "", "Replaced by a person with what a replay fetched"
		}
		events = append(events, e)
	}
	return events, nil
}
