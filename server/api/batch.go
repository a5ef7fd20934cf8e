package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// MaxBatchBody is the largest body of a batch: some 800 bytes for each request.
const MaxBatchBody = 8 << 20

func batchEndpoints(a *API) []endpoint {
	return []endpoint{serveDescribed(a, createReservations.Operation, a.describeBatch, bookBatch)}
}

// batch is the requests of one batch. Two batches are the same when their texts are:
// a sequence of JSON values is none itself.
type batch[R any] struct {
	Text  []byte // its hash
	items []ledger.Item[R]
}

var createReservations = operation.Change[batch[ledger.ReserveRequest], []ledger.Outcome, contract.BatchResults]{
	Operation: operation.Operation{ID: "createReservations", Method: http.MethodPost, Path: "/reservations/batch",
		Tag: "bookings", Policy: auth.Member, MaxBody: MaxBatchBody, Summary: "Book up to 10,000 reservations at once"},
	Lock:  func(b batch[ledger.ReserveRequest]) *ledger.LockHint { return ledger.BatchLockHint(b.items) },
	Count: func(b batch[ledger.ReserveRequest]) int { return len(b.items) },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b batch[ledger.ReserveRequest]) (
		[]ledger.Outcome, error) {
		return l.ReserveMany(ctx, actor, b.items)
	},
	Encode: forAnybody(encodeBatch),
}

func (a *API) describeBatch(op *huma.Operation) {
	schema := itemSchema[contract.ReservationCreate](a)
	op.SkipValidateBody = true
	op.Description = "A JSON array, or one JSON object on each line. All bookings are made in one transaction, in " +
		"the given order; a request that is refused, or that violates the schema, does not stop the others. The " +
		"journal has the first 10 refusals and the number of the rest. A request that the batch had no time for gets " +
		"status 503 and code pool-busy: send it again in another batch."
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json":     {Schema: &huma.Schema{Type: huma.TypeArray, Items: schema}},
		"application/x-ndjson": {Schema: schema},
	}}
}

func bookBatch(ctx context.Context, a *API, in *struct {
	KeyRequired
	RawBody []byte
},
) (*Created[contract.BatchResults], error) {
	if _, err := in.idempotencyKey(); err != nil { // before a body of megabytes is read
		return nil, err
	}
	if notABatchAtAll.Match(in.RawBody) {
		return nil, problem.Invalid("", "must be an array", "").Request(sendReservations)
	}
	items, err := decodeBatch(a, reservationItems(a.Clock.Now()), in.RawBody)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(in.RawBody)
	asked := batch[ledger.ReserveRequest]{Text: sum[:], items: items}
	got, _, err := changeOnce(ctx, a, createReservations, in, asked)
	return &Created[contract.BatchResults]{Status: got.Status, Body: got.Body,
		Replayed: formatReplayed(got.Replayed)}, err
}

const sendReservations = "Send a JSON array of reservations, or one JSON object on each line"

// notABatchAtAll matches an object that is no reservation but, if anything, the form of a batch of jobs.
var notABatchAtAll = regexp.MustCompile(`^\s*\{\s*(\}\s*$|"items"\s*:)`)

// itemForm is how the requests of a kind of batch are read.
type itemForm[B, R any] struct {
	send string // how a batch is to be sent, for whoever sent it otherwise
	// decode returns a request as the ledger takes it, and what of it is refused before that.
	decode func(B) (R, error)
}

// reservationItems are requests that come at this time.
func reservationItems(now time.Time) itemForm[contract.ReservationCreate, ledger.ReserveRequest] {
	return itemForm[contract.ReservationCreate, ledger.ReserveRequest]{
		send: sendReservations,
		decode: func(b contract.ReservationCreate) (ledger.ReserveRequest, error) {
			return decodeReservation(b), checkReservation(now, b)
		},
	}
}

// decodeBatch reads a JSON array or a sequence of JSON objects.
func decodeBatch[B, R any](a *API, form itemForm[B, R], body []byte) ([]ledger.Item[R], error) {
	check := newItemCheck(a, form)
	if batch, plain := check.readPlainBatch(body); plain {
		return batch, nil
	}
	return check.decodeAnyBatch(body)
}

// decodeAnyBatch reads a batch of which some request is not plain, or says what is wrong
// with it.
func (c *itemCheck[B, R]) decodeAnyBatch(body []byte) ([]ledger.Item[R], error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	array := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))
	if array {
		if _, err := dec.Token(); err != nil {
			return nil, c.notABatch(0, err)
		}
	}
	var batch []ledger.Item[R]
	for dec.More() {
		if len(batch) == ledger.MaxBatch {
			return nil, problem.Invalid("", fmt.Sprintf("must hold at most %d requests", ledger.MaxBatch),
				"Send the rest in another batch")
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, c.notABatch(len(batch), err)
		}
		batch = append(batch, c.decodeItem(raw))
	}
	if array {
		if _, err := dec.Token(); err != nil {
			return nil, c.notABatch(len(batch), err)
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, c.notABatch(len(batch), errors.New("something follows the end of the array"))
	}
	if len(batch) == 0 {
		return nil, problem.Invalid("", "must hold at least 1 request", "")
	}
	return batch, nil
}

// decodeItem reads one request, and checks what is checked of one that comes alone.
func (c *itemCheck[B, R]) decodeItem(raw json.RawMessage) ledger.Item[R] {
	if p := c.findProblem(raw); p != nil {
		return ledger.Item[R]{Invalid: p}
	}
	var b B
	if err := json.Unmarshal(raw, &b); err != nil {
		p, ok := problem.Unreadable("", err)
		if !ok {
			p = malformedItem("", err.Error())
		}
		return ledger.Item[R]{Invalid: p}
	}
	return c.itemOf(b)
}

func (c *itemCheck[B, R]) itemOf(b B) (out ledger.Item[R]) {
	out.Request, out.Invalid = c.form.decode(b)
	return out
}

func (c *itemCheck[B, R]) notABatch(index int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the body ends before it does")
	}
	place := "/" + strconv.Itoa(index)
	return problem.New(contract.CodeMalformedJSON,
		fmt.Sprintf("request %d of the batch cannot be read: %v", index, err)).
		Field(contract.FieldError{Pointer: place, Code: "malformed",
			Message: strings.TrimPrefix(err.Error(), "json: ")}).
		Request(c.form.send)
}

func encodeBatch(outcomes []ledger.Outcome) contract.BatchResults {
	out := contract.BatchResults{Items: make([]contract.BatchResult, len(outcomes))}
	for i, o := range outcomes {
		if o.Err == nil {
			out.Accepted++
			out.Items[i] = contract.BatchResult{Index: i, Status: reservationStatus(o.Reservation),
				ID: o.Reservation.ID, State: string(o.Reservation.State())}
			continue
		}
		p, field := refusalOf(o.Err)
		out.Refused++
		out.Items[i] = contract.BatchResult{Index: i, Status: p.Status, Code: p.Code, Message: p.Detail, Field: field}
	}
	return out
}

// refusalOf is why there is nothing of a request, and the pointer to what of it can never be right; empty: none is.
func refusalOf(err error) (p *problem.Problem, field string) {
	if p, _ = problem.From(err); len(p.Errors) > 0 {
		field = p.Errors[0].Pointer
	}
	return p, field
}
