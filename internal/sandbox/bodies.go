package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// content is what a page was turned into. The strings are valid UTF-8, so that JSON carries them unchanged.
type content struct {
	Markdown string   `json:"markdown"`
	HTML     string   `json:"html"`
	Links    []string `json:"links"`
}

// span is where a content stands in the temporary file; a zero length means that it doesn't.
type span struct{ at, length int64 }

// errFull says that the temporary file has reached its limit.
var errFull = errors.New("the temporary file is full")

// bodyFile keeps contents outside of memory, in a temporary file that is made when first needed.
type bodyFile struct {
	mu    sync.Mutex
	file  *os.File
	size  int64
	limit int64
}

// put writes the content at the end.
func (b *bodyFile) put(c content) (span, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return span{}, fmt.Errorf("encoding a page: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size+int64(len(text)) > b.limit {
		return span{}, errFull
	}
	if b.file == nil {
		if b.file, err = os.CreateTemp("", "rollcall-sandbox-*"); err != nil {
			return span{}, fmt.Errorf("making the temporary file: %w", err)
		}
	}
	if _, err := b.file.WriteAt(text, b.size); err != nil {
		return span{}, fmt.Errorf("writing a page: %w", err)
	}
	at := span{b.size, int64(len(text))}
	b.size += at.length
	return at, nil
}

// get reads a content back.
func (b *bodyFile) get(at span) (content, error) {
	b.mu.Lock()
	file := b.file
	b.mu.Unlock()
	if file == nil {
		return content{}, os.ErrClosed
	}
	text := make([]byte, at.length)
	if _, err := file.ReadAt(text, at.at); err != nil {
		return content{}, fmt.Errorf("reading a page: %w", err)
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return content{}, fmt.Errorf("decoding a page: %w", err)
	}
	return c, nil
}

// close removes the file.
func (b *bodyFile) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	err := errors.Join(b.file.Close(), os.Remove(b.file.Name()))
	b.file = nil
	return err
}

// pageCache holds the latest made pages ready, since a page is asked for several times within a short while.
type pageCache struct {
	mu    sync.Mutex
	pages map[string]content
	order []string // The oldest first.
	size  int
	limit int
}

func (c *pageCache) get(key string) (content, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.pages[key]
	return found, ok
}

// put keeps a page, unless it would take an eighth of the room, and lets the oldest go.
func (c *pageCache) put(key string, page content) {
	weight := len(page.Markdown) + len(page.HTML)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.pages[key]; ok || weight > c.limit/8 {
		return
	}
	c.pages[key] = page
	c.order = append(c.order, key)
	for c.size += weight; c.size > c.limit; c.order = c.order[1:] {
		old := c.pages[c.order[0]]
		c.size -= len(old.Markdown) + len(old.HTML)
		delete(c.pages, c.order[0])
	}
}
