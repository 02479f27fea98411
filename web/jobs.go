package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

func jobRowsOf(jobs []store.JobRow) []views.JobRow {
	rows := make([]views.JobRow, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		rows[i] = views.JobRow{
			ID: idText(j.ID), VendorID: j.VendorID(), Kind: string(j.Kind), State: string(j.State),
			Net: string(orZero(j.SettleNet)), URLs: views.Known(int64(j.URLCount)), RollCall: answers(&j.Answers), CreatedAt: j.CreatedAt,
			SettledAt: orZero(j.EndedAt), Flags: jobFlags(&j.Job), Error: jobError(&j.Job),
			NextPollAt: orZero(j.NextPollAt), Origin: string(j.Origin), MayCancel: mayCancel(&j.Job),
			Vendor: vendorReport(&j.Job),
		}
	}
	return rows
}

func jobFlags(j *store.Job) []string {
	var flags []string
	if j.Overdue && j.State == store.JobAccepted {
		flags = append(flags, "overdue")
	}
	if j.Superseded {
		flags = append(flags, "superseded")
	}
	if j.Misnumbered {
		flags = append(flags, "MISNUMBERED")
	}
	if j.Adopted {
		flags = append(flags, "adopted")
	}
	if j.CancelRequestedAt != nil && !ended(j.State) {
		flags = append(flags, "cancel_asked")
	}
	return flags
}

// ended reports a job that doesn't change any more by itself.
func ended(state store.JobState) bool {
	switch state {
	case store.JobIntended, store.JobCalling, store.JobUncertain, store.JobAccepted:
		return false
	case store.JobSettled, store.JobGivenUp, store.JobRefused, store.JobWithdrawn, store.JobSplit:
	}
	return true
}

// mayCancel reports a job that a cancellation could still do something about,
// or would have to say why not.
func mayCancel(j *store.Job) bool { return !ended(j.State) && j.CancelRequestedAt == nil }

func jobError(j *store.Job) string {
	switch {
	case j.ErrorCode == "":
		return j.ErrorMessage
	case j.ErrorMessage == "":
		return j.ErrorCode
	}
	return j.ErrorCode + ": " + j.ErrorMessage
}

// job is GET /jobs/{id}.
func (s *Server) job(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	after, err := positionParam(c, -1)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	story, err := s.store.PageJob(ctx, id)
	if err != nil {
		return err
	}
	props := jobProps(ctx, story)
	props.PollDue = !props.NextPollAt.IsZero() && !props.NextPollAt.After(s.now())
	items, err := s.store.PageJobItems(ctx, id, after, pageRows+1)
	if err != nil {
		return fmt.Errorf("items of job %d: %w", id, err)
	}
	items, more := cut(items, pageRows)
	last := ""
	for i := range items {
		props.Items = append(props.Items, itemRow(&items[i].ItemRow))
		last = placeCursor(int64(items[i].InputIndex))
	}
	props.ItemsPager = pager(c, cursorParam, more, last)
	props.Self = c.Request().URL.RequestURI()
	if props.Layout, err = s.layout(c, views.Textf(ctx, "Job %s", props.ID), views.SectionBatches); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Job(props))
}

func jobProps(ctx context.Context, story *store.JobStory) views.JobProps {
	j := &story.Job
	p := views.JobProps{
		ID: idText(j.ID), VendorID: j.VendorID(), Kind: string(j.Kind), State: string(j.State),
		Net: string(orZero(j.SettleNet)), BatchID: idText(j.BatchID), BatchName: story.BatchName,
		Attempt: story.Attempt, ParentID: idOrNone(j.ParentJobID), Flags: jobFlags(j), Error: jobError(j),
		RollCall: answers(&story.Answers), TakenOver: views.Known(story.TakenOver), Vendor: vendorReport(j), NextPollAt: orZero(j.NextPollAt),
		MaySettle: j.State == store.JobAccepted || j.State == store.JobGivenUp, MayCancel: !ended(j.State),
		// One that was given up may still be settled by a person.
		Live: !ended(j.State) || j.State == store.JobGivenUp, Timeline: timeline(ctx, story),
	}
	if !ended(j.State) {
		p.CancelAt = orZero(j.CancelRequestedAt)
	}
	for _, child := range story.Children {
		p.ChildIDs = append(p.ChildIDs, idText(child))
	}
	return p
}

// vendorReport reads what the vendor last said, for display beside the sum and
// never in it.
func vendorReport(j *store.Job) views.VendorReport {
	report := views.VendorReport{Status: j.VendorStatus}
	var said map[string]json.RawMessage
	if err := json.Unmarshal(j.VendorReports, &said); err != nil {
		return report // It never said anything, or nothing we can count.
	}
	for _, each := range []struct {
		to    *views.Count
		names []string
	}{
		{&report.Total, []string{"total_urls", "total_pages", "total"}},
		{&report.Completed, []string{"completed_urls", "completed_pages", "completed"}},
		{&report.Failed, []string{"failed_urls", "failed_pages", "failed"}},
		{&report.Cancelled, []string{"cancelled_urls", "cancelled_pages", "cancelled"}},
		{&report.Pending, []string{"pending_urls", "pending"}},
		{&report.Charged, []string{"tokens_charged", "charged"}},
	} {
		*each.to = firstNumber(said, each.names)
	}
	return report
}

func firstNumber(said map[string]json.RawMessage, names []string) views.Count {
	for _, name := range names {
		var n int64
		raw := bytes.TrimSpace(said[name])
		if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) && json.Unmarshal(raw, &n) == nil {
			return views.Known(n)
		}
	}
	return views.Count{}
}

// settleJob is POST /jobs/{id}/settle.
func (s *Server) settleJob(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.store.Job(ctx, id); err != nil {
		return err
	}
	if err := s.pipeline.SettleNow(ctx, id); err != nil {
		return fmt.Errorf("settle job %d: %w", id, err)
	}
	if err := s.flash(c, "success", "The vendor is being asked about this job. Its answer shows here as soon as it has come."); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/jobs/"+idText(id))
}
