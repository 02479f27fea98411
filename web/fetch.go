package web

import (
	"crypto/rand"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/views"
)

// typedFetch is how a page is asked for, as the form of a batch, a crawl or a
// single URL was sent.
func typedFetch(c echo.Context) views.Fetch {
	r := c.Request()
	formats := r.PostForm["format"]
	return views.Fetch{
		Markdown: slices.Contains(formats, "markdown"), HTML: slices.Contains(formats, "html"),
		RenderJS: r.PostFormValue("render_js") != "", ProxyCountry: field(c, "proxy_country", 20),
		ProxyType: field(c, "proxy_type", 40), WaitUntil: field(c, "wait_until", 40), WaitFor: field(c, "wait_for", 2000),
		WaitTimeout: field(c, "wait_timeout", 40), Once: field(c, "once", maxOnce),
	}
}

// maxOnce bounds the token of a form.
const maxOnce = 64

// once gives a form its own token, unless it has it: one that comes back with
// mistakes is the same form.
func once(f views.Fetch) views.Fetch {
	if f.Once == "" {
		f.Once = rand.Text()
	}
	return f
}

// fetchOptions turns that into what the pipeline takes, or says by field why
// it can't.
func fetchOptions(f views.Fetch) (pipeline.Options, views.Errors) {
	errs := views.Errors{}
	o := pipeline.Options{
		RenderJS: f.RenderJS, ProxyCountry: f.ProxyCountry, ProxyType: f.ProxyType, WaitUntil: f.WaitUntil, WaitFor: f.WaitFor,
	}
	if f.Markdown {
		o.Formats = append(o.Formats, "markdown")
	}
	if f.HTML {
		o.Formats = append(o.Formats, "html")
	}
	if len(o.Formats) == 0 {
		errs["format"] = "Choose at least one format."
	}
	if f.WaitTimeout != "" {
		seconds, err := strconv.ParseFloat(f.WaitTimeout, 64)
		if err != nil || seconds <= 0 || seconds > 3600 {
			errs["wait_timeout"] = "Give a number of seconds, such as 30."
		} else {
			o.WaitTimeoutMS = int(seconds * 1000)
		}
	}
	return o, errs
}

// fieldErrors puts what the pipeline refused beside the fields it is about; of
// several mistakes in one field the first is shown.
func fieldErrors(invalid *pipeline.InvalidSubmission) views.Errors {
	errs := views.Errors{}
	for _, each := range invalid.Fields {
		name := formField(each.Field)
		if errs[name] == "" {
			errs[name] = each.Message
		}
	}
	return errs
}

// formField is a field's name in the form; "form" when it has no place there.
func formField(name string) string {
	switch name {
	case "formats":
		return "format"
	case "name", "urls", "file", "kind", "depth", "limit", "proxy_country", "proxy_type", "wait_until", "wait_for", "wait_timeout",
		"headers":
		return name
	}
	return "form"
}
