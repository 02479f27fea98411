package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// compareExtract looks at the job itself, which echoes its options once it has
// ended. Before that it may be another call's for the same address.
func (p *Pipeline) compareExtract(ctx context.Context, c *call, id string) (candidate, error) {
	got, err := p.vendor.GetExtract(ctx, id)
	if errors.Is(err, geonode.ErrNotFound) {
		return notOurs, nil
	}
	if err != nil {
		return notOurs, err
	}
	if !got.Status.Terminal() {
		return maybeOur, nil
	}
	// One that failed may echo nothing, and will never tell more.
	if got.Metadata.Raw != nil && !sameOptions(c, got.Metadata.Config) {
		return notOurs, nil
	}
	return ours, nil
}

// compareBatch reads all of a batch's results and holds them against what was
// sent. A batch that still runs has not shown all its URLs.
func (p *Pipeline) compareBatch(ctx context.Context, c *call, id string) (candidate, error) {
	carried := make([]store.CarriedItem, len(c.items))
	for i, it := range c.items {
		carried[i] = store.CarriedItem{InputIndex: it.InputIndex, ItemID: it.ItemID, URL: it.URL}
	}
	seen := 0
	for page := 1; page <= len(c.items)/geonode.MaxResultPage+1; page++ {
		got, err := p.vendor.GetBatch(ctx, id, geonode.Page{Number: page})
		if errors.Is(err, geonode.ErrNotFound) {
			return notOurs, nil
		}
		if err != nil {
			return notOurs, err
		}
		var aside []string
		for _, u := range got.InvalidURLs.List {
			aside = append(aside, u.URL)
		}
		number := numberItems(carried, aside)
		for i := range got.Results {
			if number.find(&got.Results[i]) == nil {
				return notOurs, nil
			}
		}
		seen += len(got.Results)
		if !got.Status.Terminal() && page == 1 && seen+len(aside) < len(c.items) {
			return maybeOur, nil
		}
		if seen+len(aside) >= len(c.items) {
			return ours, nil
		}
		if len(got.Results) == 0 {
			break
		}
	}
	// Ended without having shown every URL: too little to tell by.
	return notOurs, nil
}

// sameOptions compares the vendor's echo with what was asked; a member that
// was not echoed says nothing either way.
func sameOptions(c *call, echo geonode.JobConfig) bool {
	if echo.RenderJS != nil && *echo.RenderJS != c.options.RenderJS {
		return false
	}
	if !sameFormats(c.options.Formats, echo.Formats) {
		return false
	}
	if echo.Proxy != nil && c.options.ProxyCountry != "" && !strings.EqualFold(echo.Proxy.Country, c.options.ProxyCountry) {
		return false
	}
	if echo.Wait != nil && (c.options.WaitFor != "" || echo.Wait.For != "") && echo.Wait.For != c.options.WaitFor {
		return false
	}
	return true
}

func sameFormats(asked []string, echo []geonode.Format) bool {
	if len(echo) == 0 {
		return true
	}
	got := make([]string, len(echo))
	for i, f := range echo {
		got[i] = string(f)
	}
	return slices.Equal(slices.Sorted(slices.Values(asked)), slices.Sorted(slices.Values(got)))
}
