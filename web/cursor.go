package web

import (
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// pageRows is how many rows a page of a list has.
const pageRows = 50

// jobRows is how many jobs the page of a batch shows at a time.
const jobRows = 20

// cursorParam says in an address where a list goes on. Its value is for us
// alone: what it means may change.
const cursorParam = "from"

// idParam reads an id in a path: digits that fit. Anything else names nothing.
func idParam(c echo.Context) (int64, error) {
	text := c.Param("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != text {
		return 0, notFound()
	}
	return id, nil
}

// keyParam reads where a list by time and id goes on.
func keyParam(c echo.Context) (store.Key, error) {
	raw, err := cursorBytes(c, cursorParam, 16)
	if raw == nil || err != nil {
		return store.Key{}, err
	}
	micros := int64(binary.BigEndian.Uint64(raw[:8])) //nolint:gosec // The same bits back.
	id := int64(binary.BigEndian.Uint64(raw[8:]))     //nolint:gosec // The same bits back.
	at := time.UnixMicro(micros).UTC()
	if id <= 0 || at.Year() < 1 || at.Year() > 9999 {
		return store.Key{}, damagedLink()
	}
	return store.Key{At: at, ID: id}, nil
}

// placeParam reads where a list by number goes on; none when it begins.
func placeParam(c echo.Context, param string, none int64) (int64, error) {
	raw, err := cursorBytes(c, param, 8)
	if raw == nil || err != nil {
		return none, err
	}
	return int64(binary.BigEndian.Uint64(raw)), nil //nolint:gosec // The same bits back.
}

// positionParam is placeParam for a number that the database keeps in 32 bits.
func positionParam(c echo.Context, none int64) (int, error) {
	place, err := placeParam(c, cursorParam, none)
	if err == nil && (place < none || place > 1<<31-1) {
		return 0, damagedLink()
	}
	return int(place), err
}

func cursorBytes(c echo.Context, param string, size int) ([]byte, error) {
	text := c.QueryParam(param)
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != size {
		return nil, damagedLink()
	}
	return raw, nil
}

func damagedLink() error {
	return badRequest("The link to this part of the list is damaged. Start again at its beginning.", nil)
}

func keyCursor(at time.Time, id int64) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(raw, uint64(id))) //nolint:gosec // Ids are positive.
}

func placeCursor(place int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(place))) //nolint:gosec // Only its bits are kept.
}

// pager leads through a list that was asked for one row more than it shows:
// more says whether that row came, last is the cursor of the last row shown.
// Filters stay; the cursor of another list on the page goes.
func pager(c echo.Context, param string, more bool, last string) views.Pager {
	var p views.Pager
	query := c.QueryParams()
	kept := url.Values{}
	for name, values := range query {
		if name != cursorParam && name != jobsParam && len(values) > 0 && values[0] != "" {
			kept.Set(name, values[0])
		}
	}
	path := c.Request().URL.Path
	if query.Get(param) != "" {
		p.Newer = address(path, kept)
	}
	if more {
		kept.Set(param, last)
		p.Older = address(path, kept)
	}
	return p
}

func address(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// cut drops the row that only tells that there are more.
func cut[T any](rows []T, size int) ([]T, bool) {
	if len(rows) > size {
		return rows[:size], true
	}
	return rows, false
}
