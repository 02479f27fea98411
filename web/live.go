package web

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/store"
	"rollcall/views"
)

// Bounds of live pages.
const (
	// maxStreams is how many streams one process keeps.
	maxStreams = 1000
	// gapBatch and gapOverview lie between two messages of a topic at least;
	// after a slow rendering the gap grows, so that watching never takes more
	// than a fifth of the time.
	gapBatch    = 250 * time.Millisecond
	gapOverview = time.Second
	gapFactor   = 4
	// overviewEvery refreshes the overview, as gates and webhooks move without
	// a batch's doing.
	overviewEvery = 10 * time.Second
	// batchEvery refreshes a batch: its pace is of the last minutes, also when
	// nothing moves in them.
	batchEvery = 30 * time.Second
	// messagesAtOnce is how many messages one process makes at a time.
	messagesAtOnce = 2
	// heartbeat is how often a stream shows that it lives and looks whether its
	// session still does.
	heartbeat = 15 * time.Second
	// itemsEvery lies between two events that have pages ask for their items
	// again, which costs more than the message itself.
	itemsEvery = 3 * time.Second
	// slowClient is how long a reader may take for one message.
	slowClient = 10 * time.Second
	// renderLimit bounds the making of one message.
	renderLimit = 10 * time.Second
	// gapFailed is when a message that could not be made is tried again: what
	// it was to tell may be the last that happens.
	gapFailed = time.Second
)

// overviewTopic is the topic of the overview; batches have their ids.
const overviewTopic int64 = 0

// hub fans out what one listener hears to the streams of this process. Each
// message is the whole present state, so a reader who is too slow for one just
// gets the next.
type hub struct {
	server *Server
	quit   chan struct{}
	once   sync.Once
	pumps  sync.WaitGroup
	// listening tells whether changes are heard of.
	listening atomic.Bool

	// slots bounds how many messages are made at once, and so how much of the
	// database live pages take.
	slots chan struct{}

	mu      sync.Mutex
	topics  map[topicKey]*topic
	streams int
}

// message is a topic's present state as server-sent events. After the last one
// nothing will come.
type message struct {
	data []byte
	last bool
}

// topicKey is a page in a language.
type topicKey struct {
	id   int64
	lang string
}

// topic is one page's worth of news, made once for all who look at it in one
// language.
type topic struct {
	topicKey

	dirty   chan struct{} // Holds one: something changed since the last message.
	moved   atomic.Bool   // Items changed since pages were told to ask for them.
	behind  atomic.Bool   // A reader may have missed the last message with failures.
	failed  atomic.Bool   // The last message could not be made.
	stop    chan struct{}
	readers map[chan message]struct{}
}

func newHub(s *Server) *hub {
	h := &hub{server: s, quit: make(chan struct{}), slots: make(chan struct{}, messagesAtOnce), topics: make(map[topicKey]*topic)}
	h.listening.Store(true) // About to: who asks at once isn't told otherwise.
	return h
}

// listen hears of changes until ctx ends, and waits for what it started.
func (h *hub) listen(ctx context.Context) {
	log := h.server.log
	told := false // The log knows that the listener is lost.
	hear := func(channel, payload string) {
		if channel == store.ChannelPeople {
			h.server.open.hear(payload)
			return
		}
		if payload == "" {
			h.listening.Store(true)
			if told {
				log.InfoContext(ctx, "live pages have their listener again")
			}
			told = false
		}
		h.hear(payload)
	}
	h.server.store.ListenTo(ctx, []string{store.ChannelBatch, store.ChannelPeople}, hear, func(err error) {
		h.listening.Store(false)
		if !told {
			log.WarnContext(ctx, "live pages lost their listener, connecting again", slog.Any("error", err))
		}
		told = true
	})
	h.close()
	h.pumps.Wait()
}

// close ends every stream.
func (h *hub) close() { h.once.Do(func() { close(h.quit) }) }

// hear marks what a notification is about; an empty one means that some were
// missed, so everything is.
func (h *hub) hear(payload string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if payload == "" {
		for _, t := range h.topics {
			t.moved.Store(t.id != overviewTopic)
			t.mark()
		}
		return
	}
	id, err := strconv.ParseInt(payload, 10, 64)
	if err != nil {
		return
	}
	for _, t := range h.topics {
		if t.id == id || t.id == overviewTopic {
			t.moved.Store(t.id != overviewTopic)
			t.mark()
		}
	}
}

func (t *topic) mark() {
	select {
	case t.dirty <- struct{}{}:
	default:
	}
}

// errTooManyStreams reports that the process keeps no more streams.
var errTooManyStreams = errors.New("too many live pages")

// join adds a reader to a topic, starting its pump with the first.
func (h *hub) join(key topicKey) (chan message, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.quit:
		return nil, errTooManyStreams
	default:
	}
	if h.streams >= maxStreams {
		return nil, errTooManyStreams
	}
	h.streams++
	t := h.topics[key]
	if t == nil {
		t = &topic{
			topicKey: key, dirty: make(chan struct{}, 1), stop: make(chan struct{}), readers: make(map[chan message]struct{}),
		}
		h.topics[key] = t
		h.pumps.Go(func() { h.pump(t) })
	}
	news := make(chan message, 1)
	t.readers[news] = struct{}{}
	t.behind.Store(true)
	t.mark()
	return news, nil
}

func (h *hub) leave(key topicKey, news chan message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	t := h.topics[key]
	delete(t.readers, news)
	if len(t.readers) == 0 {
		delete(h.topics, key)
		close(t.stop)
	}
}

// pump makes a topic's messages while anybody looks.
func (h *hub) pump(t *topic) {
	every, gap := batchEvery, gapBatch
	if t.id == overviewTopic {
		every, gap = overviewEvery, gapOverview
	}
	refresh, items := time.NewTicker(every), time.NewTimer(1<<63-1)
	defer refresh.Stop()
	defer items.Stop()
	resting := false // Pages were told of items less than itemsEvery ago.
	for {
		select {
		case <-h.quit:
			return
		case <-t.stop:
			return
		case <-t.dirty:
		case <-refresh.C:
		case <-items.C:
			resting = false
		}
		more := ""
		if !resting && t.moved.Swap(false) {
			more, resting = itemsMoved, true
			items.Reset(itemsEvery)
		}
		pause := max(gap, gapFactor*h.publish(t, more))
		if t.failed.Load() {
			pause = max(pause, gapFailed)
		}
		select {
		case <-h.quit:
			return
		case <-t.stop:
			return
		case <-time.After(pause):
		}
	}
}

// failing notes that a message could not be made, which is told once and tried
// again: nothing else may change that would have it made anew.
func (t *topic) failing(ctx context.Context, log *slog.Logger, more string, err error) {
	if !t.failed.Swap(true) {
		log.WarnContext(ctx, "live page not refreshed, trying again", slog.Int64("topic", t.id), slog.Any("error", err))
	}
	if errors.Is(err, store.ErrNotFound) {
		return // There is nothing left to show.
	}
	if more != "" {
		t.moved.Store(true)
	}
	t.behind.Store(true) // What this one was to tell is in the next.
	t.mark()
}

// The events beside the unnamed ones, which hold what is to be swapped.
const (
	// itemsMoved has pages ask for their items again.
	itemsMoved = "event: items\ndata: 1\n\n"
	// streamDone has them close the stream instead of opening it again.
	streamDone = itemsMoved + "event: done\ndata: 1\n\n"
	// stillHere is the heartbeat.
	stillHere = "event: ping\ndata: 1\n\n"
)

// publish makes one message and leaves it with every reader; it returns how
// long the making took.
func (h *hub) publish(t *topic, more string) time.Duration {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	ctx, cancel := context.WithTimeout(context.Background(), renderLimit)
	defer cancel()
	began := h.server.now()
	made, err := h.server.news(views.WithLanguage(ctx, t.lang), t.id, t.behind.Swap(false) || more != "")
	took := h.server.now().Sub(began)
	if err != nil {
		t.failing(ctx, h.server.log, more, err)
		return took
	}
	t.failed.Store(false)
	made.data = append(made.data, more...)
	if made.last {
		made.data = append(made.data, streamDone...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for news := range t.readers {
		select {
		case <-news: // The reader was slow: the older message is stale.
			t.behind.Store(true)
		default:
		}
		news <- made
	}
	return took
}

// news is a topic's present state; failures have it group those of a batch,
// which is looked up as seldom as items are asked for. A batch that has ended
// says so once more and is done: what may still come late shows when the page is
// loaded again.
func (s *Server) news(ctx context.Context, id int64, failures bool) (message, error) {
	if id == overviewTopic {
		props, err := s.overviewProps(ctx)
		if err != nil {
			return message{}, err
		}
		data, err := event(ctx, views.OverviewLive(props)) //nolint:contextcheck // templ hands it to each part.
		return message{data: data}, err
	}
	props, ended, err := s.batchMoved(ctx, id, failures)
	if err != nil {
		return message{}, err
	}
	data, err := event(ctx, views.BatchLive(props)) //nolint:contextcheck // templ hands it to each part.
	return message{data: data, last: ended}, err
}
