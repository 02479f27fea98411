package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rollcall/internal/preflight"
	"rollcall/store"
)

// What a preflight reads and finds, in the reader's own words.
type (
	// Choices are how a person wants a file read.
	Choices = preflight.Choices
	// Detected is how it was read in the end.
	Detected = preflight.Detected
	// Totals sum the verdicts up.
	Totals = preflight.Totals
	// HostCount is how many URLs of a host are to be sent.
	HostCount = preflight.HostCount
)

const (
	// PreflightKept is how long a preflight is kept.
	PreflightKept = 24 * time.Hour
	// MaxStoredDays is how far back stored pages may be looked for.
	MaxStoredDays = 3650
)

// PreflightInput is a submission to be looked through: Text is what was pasted.
// Its Token and LeaveOutBad are not used.
type PreflightInput struct {
	Submission
	// Files are one file, or an index of sitemaps with those it names.
	Files []File
	// Kept is a preflight of the same owner whose files are meant, while there
	// are none; 0 is none.
	Kept    int64
	Choices Choices
	// Open opens the sitemaps that an index names; nil looks for them among the
	// files. It fetches nothing.
	Open       func(url string) (io.ReadCloser, error)
	StoredDays int // URLs whose page was stored in the last days are left out; 0: are not.
}

// Preflight keeps what was pasted and uploaded, reads it, and returns the
// preflight's id. It returns *InvalidSubmission, having kept nothing, when a
// field is wrong; what is wrong with lines is for the preflight to show. ErrBusy
// says that too many are being read, and that nothing was kept.
func (p *Pipeline) Preflight(ctx context.Context, in PreflightInput) (int64, error) {
	if err := checkStored(in.Choices, in.StoredDays); err != nil {
		return 0, err
	}
	leave, err := p.seats.take(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	in.Submission = in.withDefaults()
	f, err := p.newPreflight(ctx, in)
	if err != nil {
		return 0, err
	}
	if err := in.check(ctx, f); err != nil {
		return 0, err
	}
	if err := p.insertPreflight(ctx, f); err != nil {
		return 0, err
	}
	if err := p.readPreflight(ctx, f, in.Choices, in.StoredDays, in.Open); err != nil {
		return 0, fmt.Errorf("preflight %d: %w", f.ID, err)
	}
	return f.ID, nil
}

// KeepUpload keeps an upload for a form that came back with mistakes: browsers
// forget files. It returns the id that the form then names as Kept.
func (p *Pipeline) KeepUpload(ctx context.Context, in PreflightInput) (int64, error) {
	f, err := p.newPreflight(ctx, PreflightInput{Submission: Submission{CreatedBy: in.CreatedBy}, Files: in.Files})
	if err != nil {
		return 0, err
	}
	return f.ID, p.insertPreflight(ctx, f)
}

// checkStored refuses to look for stored pages by another rule than the one they
// are known by: a page under another fragment, or under other parameters, would
// be left out in place of the one that is meant, or be fetched again.
func checkStored(c Choices, days int) error {
	switch {
	case days < 0 || days > MaxStoredDays:
		return invalidField("stored_days", fmt.Sprintf("the days are between 0 and %d", MaxStoredDays))
	case days > 0 && c.KeepFragment:
		return invalidField("stored_days", "stored pages are told without what follows the #: "+
			"give no days, or let what follows the # make no other URL")
	case days > 0 && c.SortQuery:
		return invalidField("stored_days", "stored pages are told by their parameters as they stand: "+
			"give no days, or let the order of the parameters matter")
	}
	return nil
}

func invalidField(field, message string) error {
	return &InvalidSubmission{Fields: []FieldError{{field, message}}}
}

// upload puts the files into a row, or those of an earlier preflight in place of
// none.
func (p *Pipeline) upload(ctx context.Context, in PreflightInput, f *store.Preflight) error {
	if len(in.Files) > 0 {
		files, err := indexFirst(ctx, in.Files)
		if err != nil {
			return err
		}
		f.Packed, f.UploadName = true, namesOf(files)
		f.Upload, f.UploadSize, err = pack(ctx, files)
		return err
	}
	if in.Kept == 0 {
		return nil
	}
	kept, err := p.store.Preflight(ctx, in.Kept, in.CreatedBy, p.now())
	if err == nil {
		_, f.Upload, err = p.store.PreflightContent(ctx, kept.ID)
		f.Packed, f.UploadName, f.UploadSize = kept.Packed, kept.UploadName, kept.UploadSize
	}
	if errors.Is(err, store.ErrNotFound) {
		return invalidField("file", "the uploaded file was not kept any longer: choose it again")
	}
	return err
}

// check reports every field that is wrong at once.
func (in PreflightInput) check(ctx context.Context, f *store.Preflight) error {
	fields := append(in.Options.check(), checkHeaders(in.Headers)...)
	fields = append(fields, checkKind(in.Submission)...)
	if single(in.Kind) {
		fields = append(fields, FieldError{"kind", "choose automatic, extract or batch"})
	}
	if utf8.RuneCountInString(in.Name) > maxName {
		fields = append(fields, FieldError{"name", fmt.Sprintf("the name is over %d characters", maxName)})
	}
	content, err := in.checkContent(ctx, f)
	if err != nil {
		return err
	}
	if fields = append(fields, content...); len(fields) > 0 {
		return &InvalidSubmission{Fields: fields}
	}
	return nil
}

// checkContent says what is wrong with what was pasted and uploaded.
func (in PreflightInput) checkContent(ctx context.Context, f *store.Preflight) ([]FieldError, error) {
	files, err := keptFiles(f)
	if err != nil {
		return nil, err
	}
	pasted := strings.TrimSpace(in.Text) != ""
	switch {
	case len(in.Text) > MaxPasted:
		return []FieldError{{"urls", fmt.Sprintf("over %d MB; submit them in several batches, or as a file", MaxPasted>>20)}}, nil
	case !pasted && f.UploadSize == 0 && len(files) > 0:
		return []FieldError{{"file", "the file is empty"}}, nil
	case !pasted && len(files) == 0:
		return []FieldError{{"urls", "paste at least one URL, or choose a file"}}, nil
	case len(files) == 1 && pasted:
		if plain, err := plainLines(ctx, files[0]); err != nil || plain {
			return nil, err
		}
	case !pasted || len(files) == 0:
		problem, err := checkFiles(ctx, files)
		if err != nil || problem == "" {
			return nil, err
		}
		return []FieldError{{"file", problem}}, nil
	}
	return []FieldError{{"file", "only a plain text file can go together with pasted lines: submit the two apart"}}, nil
}

// errEnough ends a reading that has shown what was wanted.
var errEnough = errors.New("enough was read")

// newPreflight is the row, without what reading it will show.
func (p *Pipeline) newPreflight(ctx context.Context, in PreflightInput) (*store.Preflight, error) {
	options, err := json.Marshal(in.Options)
	if err != nil {
		return nil, fmt.Errorf("encode the options: %w", err)
	}
	now := p.now()
	f := &store.Preflight{
		CreatedBy: in.CreatedBy, CreatedAt: now, ExpiresAt: now.Add(PreflightKept), Kind: in.Kind, Options: options,
		Name: strings.TrimSpace(store.CleanText(in.Name)), Pasted: []byte(in.Text),
		Choices: json.RawMessage(`{}`), StoredDays: in.StoredDays,
	}
	if err := p.upload(ctx, in, f); err != nil {
		return nil, err
	}
	if len(in.Headers) > 0 {
		plain, err := json.Marshal(in.Headers)
		if err != nil {
			return nil, fmt.Errorf("encode the headers: %w", err)
		}
		f.HeadersSealed = p.sealer.seal(headersPlace, plain)
	}
	return f, nil
}

// preflightFacts is what the audit log tells of a preflight.
type preflightFacts struct {
	Pasted     int    `json:"pasted_bytes,omitempty"`
	Upload     int64  `json:"upload_bytes,omitempty"`
	UploadName string `json:"upload_name,omitempty"`
}

func (p *Pipeline) insertPreflight(ctx context.Context, f *store.Preflight) error {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.InsertPreflight(ctx, f); err != nil {
			return err
		}
		return tx.Audit(ctx, f.CreatedAt, store.Change{
			What: "preflight.make", Kind: "preflight", ID: strconv.FormatInt(f.ID, 10),
			After: preflightFacts{Pasted: len(f.Pasted), Upload: f.UploadSize, UploadName: f.UploadName},
		})
	})
	if err != nil {
		return fmt.Errorf("keep a preflight: %w", err)
	}
	return nil
}

// maxFileName bounds the name of an upload, in bytes.
const maxFileName = 255

// fileName is a file's own name, fit to be shown: without folders, and without
// characters that are not seen or turn the text around.
func fileName(name string) string {
	name = path.Base(strings.ReplaceAll("/"+store.CleanText(name), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return '\uFFFD'
		}
		return r
	}, name)
	if name == "/" || name == "." {
		return ""
	}
	return clip(name, maxFileName)
}

// Reread reads a preflight's content again, as it is now to be read. ErrBusy is
// as of Preflight.
func (p *Pipeline) Reread(ctx context.Context, id int64, owner *int64, c Choices, storedDays int) error {
	if err := checkStored(c, storedDays); err != nil {
		return err
	}
	f, err := p.store.Preflight(ctx, id, owner, p.now())
	if err != nil {
		return err
	}
	if f.BatchID != nil {
		return nil // Its page leads to the batch.
	}
	leave, err := p.seats.take(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if f.Pasted, f.Upload, err = p.store.PreflightContent(ctx, id); err != nil {
		return err
	}
	err = p.readPreflight(ctx, f, c, storedDays, nil)
	if errors.Is(err, store.ErrNotFound) {
		return err
	}
	return ofTask(err, "preflight", id)
}

// PreflightForm is what a preflight was made from, for the form to be gone back
// to; without the upload, which Kept names.
func (p *Pipeline) PreflightForm(ctx context.Context, id int64, owner *int64) (PreflightInput, error) {
	f, err := p.store.Preflight(ctx, id, owner, p.now())
	if err != nil {
		return PreflightInput{}, err
	}
	pasted, _, err := p.store.PreflightContent(ctx, id)
	if err != nil {
		return PreflightInput{}, err
	}
	in := PreflightInput{
		Submission: Submission{Name: f.Name, Kind: f.Kind, Text: string(pasted), CreatedBy: f.CreatedBy},
		StoredDays: f.StoredDays,
	}
	if f.UploadSize > 0 {
		in.Kept = f.ID
	}
	if err := json.Unmarshal(f.Choices, &in.Choices); err != nil {
		return in, fmt.Errorf("choices of preflight %d: %w", id, err)
	}
	in.Options, in.Headers, err = p.readOptions(&store.Batch{ID: id, Options: f.Options, HeadersSealed: f.HeadersSealed})
	return in, err
}

// DropPreflight ends a preflight's time: what is left of it the next sweep
// removes.
func (p *Pipeline) DropPreflight(ctx context.Context, id int64) error {
	return ofTask(p.store.ExpirePreflight(ctx, id, p.now()), "preflight", id)
}

// sweepPreflights removes what nobody needs any more of preflights, a few
// thousand lines at a time, until nothing is left or ctx ends.
func (p *Pipeline) sweepPreflights(ctx context.Context) (int, error) {
	for steps := 0; ; steps++ {
		more, err := p.store.SweepPreflight(ctx, p.now())
		if err != nil || !more {
			return steps, err
		}
	}
}
