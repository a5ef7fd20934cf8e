package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

// Heartbeat is how often a quiet stream says that it is alive, so that no one in
// between takes it for dead.
const Heartbeat = 15 * time.Second

// takeWithin is how long a client may take to read what it is sent at once.
const takeWithin = 30 * time.Second

// lines is the media type of one JSON object a line.
const lines = "application/x-ndjson"

// Viewer says what the client of a stream may see now, and for how long that
// holds. The error ends the stream.
type Viewer func(context.Context) (ledger.Scope, time.Duration, error)

// Following is what one client follows, and how it is told.
type Following struct {
	Viewer Viewer
	Filter ledger.EventFilter
	// Name puts names beside the ids of events, as far as the scope may see them;
	// nil leaves them without.
	Name func(context.Context, ledger.Scope, []contract.Event)
}

// Stream sends the events that the viewer may see and that match the filter,
// those of Filter.After on, to w until the request ends: as server-sent events,
// or as lines of JSON for who accepts those. The viewer is asked again whenever
// its answer no longer holds; when it may not go on as before, a last message
// says so. HEAD is answered with the headers alone.
func (f *Feed) Stream(w http.ResponseWriter, r *http.Request, what Following) {
	conn := http.NewResponseController(w)
	out := streamWriter{w: w, conn: conn, flush: conn.Flush, lines: strings.Contains(r.Header.Get("Accept"), lines)}
	out.writeHeader()
	if r.Method == http.MethodHead {
		return
	}
	if out.flush() == nil {
		f.Follow(r.Context(), &out, what)
	}
}

// Receiver is who follows events.
type Receiver interface {
	// Send sends events, in their order. An error ends the following.
	Send([]contract.Event) error
	// Beat says that whoever follows is still followed for; after is the last event sent.
	Beat(after int64) error
	// End says why nothing more comes.
	End(after int64, code, text string)
}

// Follow sends a receiver what Stream sends, until the context or the viewer ends it, or the
// receiver takes no more.
func (f *Feed) Follow(ctx context.Context, to Receiver, what Following) {
	scope, holds, err := what.Viewer(ctx)
	if err != nil {
		endOf(to, what.Filter.After, err)
		return
	}
	beat, check := time.NewTicker(Heartbeat), time.NewTimer(holds)
	defer beat.Stop()
	defer check.Stop()
	at := int64(-1) // everything up to there was sent, or is not followed
	for {
		changed := f.Changed() // before the read, so that nothing falls between
		last, reached, err := f.sendNew(ctx, to, scope, what, at)
		if err != nil {
			return // the client is gone, or will come back with its last id
		}
		at = reached
		what.Filter.After = last
		select {
		case <-ctx.Done():
			return
		case <-f.done:
			return
		case <-changed:
		case <-check.C:
		case <-beat.C:
			if to.Beat(what.Filter.After) != nil {
				return
			}
		}
		now, holds, err := what.Viewer(ctx) // remembered while it holds
		if err == nil && now != scope {
			err = errRightsChanged
		}
		if err != nil {
			endOf(to, what.Filter.After, err)
			return
		}
		check.Reset(max(holds, time.Millisecond))
	}
}

// errRightsChanged ends a stream whose key may see other things than it began
// with.
var errRightsChanged = errors.New("what the key may see has changed: follow again")

// sendNew writes everything that is there, and returns the last event that it sent and
// up to where that is all. What the feed remembers is not read again: of many who follow,
// few are concerned by an event.
func (f *Feed) sendNew(ctx context.Context, to Receiver, s ledger.Scope, what Following, at int64) (
	last, reached int64, err error) {
	known := f.remembered()
	if found, reached, ok := known.match(s, what.Filter, at); ok {
		if len(found) == 0 {
			return what.Filter.After, reached, nil
		}
		last, err := sendEvents(ctx, to, s, what, found)
		return last, reached, err
	}
	last, what.Filter.After = what.Filter.After, max(what.Filter.After, at)
	reached, err = f.sendStored(ctx, to, s, what)
	if reached > what.Filter.After {
		last = reached
	}
	return last, max(reached, known.upTo), err // what was remembered before was there to be read
}

// sendStored reads everything that is there, and writes it.
func (f *Feed) sendStored(ctx context.Context, to Receiver, s ledger.Scope, what Following) (int64, error) {
	for {
		var found []ledger.Event
		err := f.store.Read(ctx, func(r ledger.Reader) (err error) {
			found, err = r.Events(s, what.Filter, page)
			return err
		})
		if err != nil {
			return what.Filter.After, err
		}
		what.Filter.After, err = sendEvents(ctx, to, s, what, found)
		if err != nil || len(found) < page {
			return what.Filter.After, err
		}
	}
}

// streamWriter sends one of the two formats.
type streamWriter struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	flush func() error
	lines bool
}

// extendDeadline gives the client time for the next part of the stream: it is cut off
// when it no longer reads, however long it lives.
func (o *streamWriter) extendDeadline() {
	// A recorder of tests has no deadline to set.
	_ = o.conn.SetWriteDeadline(time.Now().Add(takeWithin)) //nolint:forbidigo // a socket's deadline is the machine's
}

// sendEvents sends events, with their names, and returns the number of the last.
func sendEvents(ctx context.Context, to Receiver, s ledger.Scope, what Following, found []ledger.Event) (
	last int64, err error) {
	if len(found) == 0 {
		return what.Filter.After, nil
	}
	encoded := make([]contract.Event, 0, len(found))
	for _, e := range found {
		encoded = append(encoded, Encode(e))
	}
	if what.Name != nil {
		what.Name(ctx, s, encoded)
	}
	if err := to.Send(encoded); err != nil {
		return what.Filter.After, err
	}
	return encoded[len(encoded)-1].Seq, nil
}

// Send implements Receiver.
func (o *streamWriter) Send(encoded []contract.Event) error {
	o.extendDeadline()
	for _, e := range encoded {
		if err := o.writeEvent(e); err != nil {
			return err
		}
	}
	return o.flush()
}

func (o *streamWriter) writeHeader() {
	o.extendDeadline()
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	if o.lines {
		h.Set("Content-Type", lines)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
	if !o.lines {
		_, _ = fmt.Fprint(o.w, "retry: 2000\n\n") // a broken connection shows at the next write
	}
}

func (o *streamWriter) writeEvent(e contract.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding event %d: %w", e.Seq, err)
	}
	if o.lines {
		_, err = fmt.Fprintf(o.w, "%s\n", data)
		return err
	}
	_, err = fmt.Fprintf(o.w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Type, data)
	return err
}

// Beat implements Receiver.
func (o *streamWriter) Beat(int64) error {
	o.extendDeadline()
	text := ": still here\n\n"
	if o.lines {
		text = "\n"
	}
	if _, err := fmt.Fprint(o.w, text); err != nil {
		return err
	}
	return o.flush()
}

// endOf tells a receiver why nothing more comes.
func endOf(to Receiver, after int64, why error) {
	if errors.Is(why, context.Canceled) {
		return // the client is gone
	}
	code, text := contract.CodeUnavailable, "the key could not be checked"
	var p *problem.Problem
	switch {
	case errors.As(why, &p):
		code, text = p.Code, p.Detail
	case errors.Is(why, ledger.ErrNotFound):
		code, text = contract.CodeUnauthenticated, "the key was revoked or has expired"
	case errors.Is(why, errRightsChanged):
		code, text = contract.CodePermissionDenied, why.Error()
	}
	to.End(after, code, text)
}

// End implements Receiver. What it sends has no id: a client goes on after the last event that
// it got.
func (o *streamWriter) End(after int64, code, text string) {
	o.extendDeadline()
	data, err := json.Marshal(contract.Event{Seq: after, Type: contract.EventStreamEnded, Reason: code,
		Message: text})
	if err != nil {
		return
	}
	if o.lines {
		_, _ = fmt.Fprintf(o.w, "%s\n", data)
	} else {
		_, _ = fmt.Fprintf(o.w, "event: %s\ndata: %s\n\n", contract.EventStreamEnded, data)
	}
	_ = o.flush()
}

// Encode returns an event as it goes over the wire.
func Encode(e ledger.Event) contract.Event {
	return contract.Event{
		Seq: e.Seq, Time: e.At.UTC(), Type: e.Type, Subject: e.Subject, OrganizationID: e.OrganizationID,
		PoolID: e.PoolID,
		Actor:  e.Actor, Via: e.Via, Reason: e.Reason, Message: e.Message,
	}
}
