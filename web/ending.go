package web

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// openStreams are the answers of this process that go on, by whose they are.
// When a session ends, on whatever replica, a notification names its person;
// those of the person's streams that have no session any more end at once. Each
// stream's own heartbeat looks too, for a notification that never came.
type openStreams struct {
	sessions *sessionStore
	asked    chan struct{} // Holds one: somebody's streams are to be looked at.

	mu     sync.Mutex
	by     map[int64]map[*openStream]struct{}
	who    map[int64]struct{} // Whose.
	anyone bool               // Everybody's: notifications may have been missed.
}

// openStream is one of them.
type openStream struct {
	hash []byte
	who  access
	end  context.CancelFunc
}

const (
	// lookTime bounds one look at sessions, lookAgain is when one that failed is
	// repeated.
	lookTime  = 10 * time.Second
	lookAgain = time.Second
)

func newOpenStreams(sessions *sessionStore) *openStreams {
	return &openStreams{
		sessions: sessions, asked: make(chan struct{}, 1),
		by: make(map[int64]map[*openStream]struct{}), who: make(map[int64]struct{}),
	}
}

// join has the request end with its session, until the function it returns is
// called. The session is looked at once more: it may have ended between the
// guard's look and this.
func (o *openStreams) join(c echo.Context) func() {
	visit := visitOf(c)
	whole := c.Request()
	ctx, cancel := context.WithCancel(whole.Context())
	c.SetRequest(whole.WithContext(ctx))
	stream := &openStream{hash: visit.hash, who: accessOf(c), end: cancel}
	o.mu.Lock()
	if o.by[visit.userID] == nil {
		o.by[visit.userID] = make(map[*openStream]struct{})
	}
	o.by[visit.userID][stream] = struct{}{}
	o.who[visit.userID] = struct{}{}
	o.mu.Unlock()
	o.ask()
	return func() {
		cancel()
		c.SetRequest(whole) // An error page must still be made.
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.by[visit.userID], stream)
		if len(o.by[visit.userID]) == 0 {
			delete(o.by, visit.userID)
		}
	}
}

// hear notes whose sessions have changed; an empty payload means that some
// notifications were missed. It doesn't block.
func (o *openStreams) hear(payload string) {
	id, err := strconv.ParseInt(payload, 10, 64)
	if payload != "" && err != nil {
		return
	}
	o.mu.Lock()
	if payload == "" {
		o.anyone = true
	} else {
		o.who[id] = struct{}{}
	}
	o.mu.Unlock()
	o.ask()
}

func (o *openStreams) ask() {
	select {
	case o.asked <- struct{}{}:
	default:
	}
}

// run looks at the streams it is asked about until ctx ends.
func (o *openStreams) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.asked:
		}
		streams, about := o.take()
		if o.look(ctx, streams) == nil {
			continue
		}
		// The database can't say. The question stays.
		o.putBack(about)
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain):
			o.ask()
		}
	}
}

// take is the streams that were asked about, and whose they are.
func (o *openStreams) take() ([]*openStream, []int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.anyone {
		for id := range o.by {
			o.who[id] = struct{}{}
		}
	}
	var streams []*openStream
	var about []int64
	for id := range o.who {
		about = append(about, id)
		for stream := range o.by[id] {
			streams = append(streams, stream)
		}
	}
	clear(o.who)
	o.anyone = false
	return streams, about
}

func (o *openStreams) putBack(about []int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range about {
		o.who[id] = struct{}{}
	}
}

// look ends the streams whose sessions don't stand any more.
func (o *openStreams) look(ctx context.Context, streams []*openStream) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	hashes := make([][]byte, len(streams))
	for i, stream := range streams {
		hashes[i] = stream.hash
	}
	roles, err := o.sessions.living(ctx, hashes)
	if err != nil {
		return err
	}
	for _, stream := range streams {
		if role, lives := roles[string(stream.hash)]; !lives || !stream.who.allows(role) {
			stream.end()
		}
	}
	return nil
}
