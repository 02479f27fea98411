package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/views"
)

// carryPrefix marks the fields of a batch that travel through the sign-in.
const carryPrefix = "batch_"

// carryFields are the single fields that travel; formats travel beside them.
func carryFields() []string {
	return []string{
		"name", "urls", "kind", "render_js", "proxy_country", "proxy_type", "wait_until", "wait_for", "wait_timeout",
		"headers", "extract_links", "skip_bad", "kept", "how", "depth", "limit", "same_domain", "subdomains",
	}
}

// carryForm is the field that says which form the others came from.
const carryForm = "form"

// formOf is the page with the form that posts to a path; "" when what is typed
// there doesn't travel.
func formOf(path string) string {
	switch path {
	case batchesPath, preflightsPath:
		return newBatchPath
	case crawlsPath:
		return newCrawlPath
	case tryPath:
		return tryPath
	}
	return ""
}

// carryBatch answers a batch whose session has ended with the sign-in form,
// which carries along what was typed. Nothing is written.
func (s *Server) carryBatch(c echo.Context) error {
	r := c.Request()
	// Whoever isn't signed in may send no more than is carried.
	limitBody(c, carriedText+formLimit)
	err := parseForm(r)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return tooLargeToCarry()
	}
	if err != nil {
		return err
	}
	note := "Your session has ended. Sign in, and what you typed is there again."
	typed, err := typedBatch(c)
	if err == nil && hasFile(r) && tabular(r) {
		// What isn't text can't be carried.
		typed, note = typedFields(c), "Your session has ended. Sign in, and what you typed is there again, but choose the file once more."
	}
	if err != nil {
		return err
	}
	if len(typed.URLs) > carriedText {
		return tooLargeToCarry()
	}
	r.PostForm.Set("urls", clean(typed.URLs, carriedText))
	props := views.SignInProps{
		Layout: s.bareLayout(c, "Sign in"), Next: formOf(c.Path()),
		Note:  note,
		Carry: []views.Pair{{Name: carryPrefix + carryForm, Value: c.Path()}},
	}
	for _, name := range carryFields() {
		if value := r.PostForm.Get(name); value != "" {
			props.Carry = append(props.Carry, views.Pair{Name: carryPrefix + name, Value: value})
		}
	}
	for _, format := range r.PostForm["format"] {
		props.Carry = append(props.Carry, views.Pair{Name: carryPrefix + "format", Value: clean(format, 20)})
	}
	return render(c, http.StatusUnauthorized, views.SignIn(props))
}

// typedURLs are the URLs of a batch that could not be taken up, for the page
// that says so; "" for every other request, or when they can't be read.
func typedURLs(c echo.Context) string {
	r := c.Request()
	if r.Method != http.MethodPost || formOf(c.Path()) == "" {
		return ""
	}
	if r.PostForm == nil {
		limitBody(c, carriedText+formLimit)
		if parseForm(r) != nil {
			return ""
		}
	}
	typed, err := typedBatch(c)
	if err != nil {
		return ""
	}
	return clean(typed.URLs, carriedText)
}

func tooLargeToCarry() error {
	return &problem{
		status: http.StatusUnauthorized, title: "Not signed in",
		text: "Your session has ended, and this batch is too large to be carried through the sign-in. " +
			"Go back, where the browser still has it, sign in in another tab, and submit it again.",
	}
}

// carried is what a sign-in form brought along.
func carried(c echo.Context) []views.Pair {
	var pairs []views.Pair
	r := c.Request()
	for name, values := range r.PostForm {
		if !strings.HasPrefix(name, carryPrefix) {
			continue
		}
		for _, value := range values {
			pairs = append(pairs, views.Pair{Name: name, Value: value})
		}
	}
	return pairs
}

// carriedBatch shows the form of a new batch, a crawl or a single URL as it was
// typed before the sign-in. It isn't submitted: that is for the person to do.
func (s *Server) carriedBatch(c echo.Context) error {
	r, form := c.Request(), url.Values{}
	for name, values := range r.PostForm {
		if plain, ok := strings.CutPrefix(name, carryPrefix); ok {
			form[plain] = values
		}
	}
	r.PostForm = form
	switch form.Get(carryForm) {
	case crawlsPath:
		return s.showNewCrawl(c, http.StatusOK, typedCrawl(c))
	case tryPath:
		return s.showTry(c, http.StatusOK, typedTry(c))
	}
	props, err := typedBatch(c)
	if err != nil {
		return err
	}
	if kept, err := strconv.ParseInt(form.Get("kept"), 10, 64); err == nil {
		if err := s.nameKept(c, &props, kept); err != nil {
			return err
		}
	}
	return s.showNewBatch(c, http.StatusOK, props)
}
