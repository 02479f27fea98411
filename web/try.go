package web

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/views"
)

// try is GET /try.
func (s *Server) try(c echo.Context) error {
	return s.showTry(c, http.StatusOK, views.TryProps{Fetch: views.Fetch{Markdown: true}})
}

func (s *Server) showTry(c echo.Context, status int, props views.TryProps) error {
	l, err := s.layout(c, "Try one URL now", views.SectionNewBatch)
	if err != nil {
		return err
	}
	props.Layout, props.Fetch = l, once(props.Fetch)
	return render(c, status, views.Try(props))
}

// tryNow is POST /try. The vendor is asked in the background; the item's page
// follows what comes of it.
func (s *Server) tryNow(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	props := typedTry(c)
	options, errs := fetchOptions(props.Fetch)
	if props.URL == "" {
		errs["urls"] = "Enter the URL to fetch."
	}
	if len(errs) > 0 {
		props.Errors = errs
		return s.showTry(c, http.StatusUnprocessableEntity, props)
	}
	options.ExtractLinks = props.ExtractLinks
	by := personOf(c).ID
	done, err := s.pipeline.TryNow(c.Request().Context(), pipeline.Submission{
		Text: props.URL, CreatedBy: &by, Options: options, Token: props.Once,
	})
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		props.Errors = oneLineErrors(c.Request().Context(), invalid)
		return s.showTry(c, http.StatusUnprocessableEntity, props)
	}
	if err != nil {
		return fmt.Errorf("try now: %w", err)
	}
	return c.Redirect(http.StatusSeeOther, "/items/"+idText(done.ItemID))
}

func typedTry(c echo.Context) views.TryProps {
	return views.TryProps{
		URL: field(c, "urls", maxTypedURL), Fetch: typedFetch(c),
		ExtractLinks: c.Request().PostFormValue("extract_links") != "",
	}
}
