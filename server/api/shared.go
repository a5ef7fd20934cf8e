package api

import (
	"context"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// Page asks for a part of a list.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"200" doc:"next_cursor of the page before."`
}

// Idempotency makes a request one that may be sent again.
type Idempotency struct {
	Key string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~]+$"`
}

// Match guards a change against one that came between.
type Match struct {
	IfMatch string `header:"If-Match" maxLength:"32" doc:"The ETag that was read."`
}

// ByID names one resource by its id, or by the name of what has one (see resolvePathID).
type ByID struct {
	ID string `path:"id" maxLength:"254"`
}

// ListOut answers one page.
type ListOut[T any] struct {
	Body contract.List[T]
}

// One answers one resource.
type One[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// Created answers a request that may have made something.
type Created[T any] struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Replayed string `header:"Idempotency-Replayed"`
	Body     T
}

func formatETag(version int) string { return strconv.Quote(strconv.Itoa(version)) }

// parseIfMatch reads If-Match, which the route requires.
func (m Match) parseIfMatch() (int, error) {
	if m.IfMatch == "" {
		return 0, problem.New(contract.CodePreconditionRequired, "This request replaces what others may have changed.").
			Field(contract.FieldError{Pointer: "If-Match", Code: "required",
				Message: "must be the ETag that was read"}).
			Request("Read it, and send its ETag as If-Match")
	}
	v, err := strconv.Atoi(strings.Trim(m.IfMatch, `"`))
	if err != nil {
		return 0, problem.Parameter("If-Match", `must be an ETag of ours, such as "3"`)
	}
	return v, nil
}

// KeyRequired is the idempotency key of a request that is refused without one.
type KeyRequired struct{ Idempotency }

// keyed is an input that may have an idempotency key.
type keyed interface{ idempotencyKey() (string, error) }

func (i Idempotency) idempotencyKey() (string, error) { return i.Key, nil }

// idempotencyKey demands a key of a request that spends money.
func (i KeyRequired) idempotencyKey() (string, error) {
	if i.Key != "" {
		return i.Key, nil
	}
	return "", problem.New(contract.CodeMissingIdempotencyKey,
		"A request that books something must be safe to send twice.").
		Field(contract.FieldError{Pointer: contract.HeaderIdempotencyKey, Code: "required",
			Message: "must be a text that is new for each new request"}).
		Request("Send the header Idempotency-Key with a new random text, and the same text again when you repeat " +
			"the request")
}

// formatReplayed is the header Idempotency-Replayed.
func formatReplayed(replayed bool) string {
	if replayed {
		return "true"
	}
	return ""
}

// DryRun lets a request ask what it would do.
type DryRun struct {
	Dry bool `query:"dry_run" doc:"Answer what would happen and change nothing."`
}

func (d DryRun) isDryRun() bool { return d.Dry }

// The inputs of the usual forms.
type (
	// create asks for something new.
	create[B any] struct {
		Idempotency
		Body B
	}
	// book asks for something that costs money.
	book[B any] struct {
		KeyRequired
		DryRun
		Body B
	}
	// act asks for something to be done to one resource.
	act struct {
		ByID
		Idempotency
	}
)

func (in *create[B]) body() B { return in.Body }
func (in *book[B]) body() B   { return in.Body }
func (in *act) target() ByID  { return in.ByID }

// forAnybody encodes for every viewer alike.
func forAnybody[T, C any](encode func(T) C) func(operation.Viewer, T) C {
	return func(_ operation.Viewer, got T) C { return encode(got) }
}

// readSnapshot runs fn on one snapshot.
func (a *API) readSnapshot(ctx context.Context, fn func(ledger.Reader) error) error {
	return a.Ledger.Store().Read(ctx, fn)
}

// readPage reads the newest rows, one more than asked for, to know whether there is
// another page. kind keeps the cursor of one list from being used on another.
func readPage[R, T any](in Page, kind string, read func(ledger.Page) ([]R, error), id func(R) string,
	encode func(R) T) (*ListOut[T], error) {
	after, err := parseCursor(kind, in.Cursor)
	if err != nil {
		return nil, err
	}
	rows, err := read(ledger.Page{After: after, Limit: in.Limit + 1, Newest: true})
	if err != nil {
		return nil, err
	}
	out := &ListOut[T]{Body: contract.List[T]{Items: make([]T, 0, len(rows))}}
	if len(rows) > in.Limit {
		rows = rows[:in.Limit]
		out.Body.NextCursor = formatCursor(kind, id(rows[len(rows)-1]))
	}
	for _, r := range rows {
		out.Body.Items = append(out.Body.Items, encode(r))
	}
	return out, nil
}

var cursorID = regexp.MustCompile(`^[0-9A-Za-z_]{1,64}$`)

func formatCursor(kind, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + id))
}

func parseCursor(kind, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	id, found := strings.CutPrefix(string(raw), kind+":")
	if err != nil || !found || !cursorID.MatchString(id) {
		return "", problem.New(contract.CodeInvalidCursor, "The cursor does not belong to this list.").
			Field(contract.FieldError{Pointer: "cursor", Code: "invalid",
				Message: "must be next_cursor of the page before"}).
			Request("Leave the cursor out to begin again")
	}
	return id, nil
}

// resolvePool resolves a filter that names a pool.
func (a *API) resolvePool(ctx context.Context, r ledger.Reader, idOrName string) (string, error) {
	return a.resolveParameter(ctx, r, auth.From(ctx).Scope(), ledger.NounPool, "pool", idOrName)
}

// furthest is how far ahead anything may be asked for, and how long a period may
// be.
const furthest = 366 * 24 * time.Hour

// truncateTime cuts a time to the resolution that is kept.
func truncateTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// parsePeriod reads a pair of query parameters; zero times get the defaults.
func parsePeriod(from, to, defaultFrom, defaultTo time.Time) (time.Time, time.Time, error) {
	if from.IsZero() {
		from = defaultFrom
	}
	if to.IsZero() {
		to = defaultTo
	}
	switch {
	case !from.Before(to):
		return from, to, problem.Parameter("to", "must be after from")
	case to.Sub(from) > furthest:
		return from, to, problem.Parameter("to", "must be at most 366 days after from")
	case from.UTC().Year() < 1 || to.UTC().Year() > 9999: // no answer could name it
		return from, to, problem.Parameter("from", "must be in the years 1 to 9999, in UTC")
	}
	return truncateTime(from), truncateTime(to), nil
}
