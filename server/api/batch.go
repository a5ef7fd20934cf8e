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
	"strconv"
	"strings"

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
type batch struct {
	Text  []byte // its hash
	items []ledger.BatchItem
}

var createReservations = operation.Change[batch, []ledger.Outcome, contract.BatchResults]{
	Operation: operation.Operation{ID: "createReservations", Method: http.MethodPost, Path: "/reservations/batch",
		Tag: "bookings", Policy: auth.Member, MaxBody: MaxBatchBody, Summary: "Book up to 10,000 reservations at once"},
	Lock:  func(b batch) *ledger.LockHint { return ledger.BatchLockHint(b.items) },
	Count: func(b batch) int { return len(b.items) },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b batch) ([]ledger.Outcome, error) {
		return l.ReserveMany(ctx, actor, b.items)
	},
	Encode: forAnybody(encodeBatch),
}

func (a *API) describeBatch(op *huma.Operation) {
	schema := a.reservationSchema()
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
	items, err := decodeBatch(a, in.RawBody)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(in.RawBody)
	got, _, err := changeOnce(ctx, a, createReservations, in, batch{Text: sum[:], items: items})
	return &Created[contract.BatchResults]{Status: got.Status, Body: got.Body,
		Replayed: formatReplayed(got.Replayed)}, err
}

// decodeBatch reads a JSON array or a sequence of JSON objects.
func decodeBatch(a *API, body []byte) ([]ledger.BatchItem, error) {
	check := newItemCheck(a)
	if batch, plain := check.readPlainBatch(a.Clock.Now(), body); plain {
		return batch, nil
	}
	return decodeAnyBatch(a, body, check)
}

// decodeAnyBatch reads a batch of which some request is not plain, or says what is wrong
// with it.
func decodeAnyBatch(a *API, body []byte, check *itemCheck) ([]ledger.BatchItem, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	array := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))
	if array {
		if _, err := dec.Token(); err != nil {
			return nil, notABatch(0, err)
		}
	}
	var batch []ledger.BatchItem
	for dec.More() {
		if len(batch) == ledger.MaxBatch {
			return nil, problem.Invalid("", fmt.Sprintf("must hold at most %d requests", ledger.MaxBatch),
				"Send the rest in another batch")
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, notABatch(len(batch), err)
		}
		batch = append(batch, decodeItem(a, raw, check))
	}
	if array {
		if _, err := dec.Token(); err != nil {
			return nil, notABatch(len(batch), err)
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, notABatch(len(batch), errors.New("something follows the end of the array"))
	}
	if len(batch) == 0 {
		return nil, problem.Invalid("", "must hold at least 1 request", "")
	}
	return batch, nil
}

// decodeItem reads one request, and checks what is checked of one that comes alone.
func decodeItem(a *API, raw json.RawMessage, check *itemCheck) ledger.BatchItem {
	if p := check.findProblem(raw); p != nil {
		return ledger.BatchItem{Invalid: p}
	}
	var b contract.ReservationCreate
	if err := json.Unmarshal(raw, &b); err != nil {
		p, ok := problem.Unreadable("", err)
		if !ok {
			p = malformedItem("", err.Error())
		}
		return ledger.BatchItem{Invalid: p}
	}
	return ledger.BatchItem{Request: decodeReservation(b), Invalid: checkReservation(a.Clock.Now(), b)}
}

func notABatch(index int, err error) error {
	place := "/" + strconv.Itoa(index)
	return problem.New(contract.CodeMalformedJSON,
		fmt.Sprintf("request %d of the batch cannot be read: %v", index, err)).
		Field(contract.FieldError{Pointer: place, Code: "malformed",
			Message: strings.TrimPrefix(err.Error(), "json: ")}).
		Request("Send a JSON array of reservations, or one JSON object on each line")
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
		p, _ := problem.From(o.Err)
		out.Refused++
		out.Items[i] = contract.BatchResult{Index: i, Status: p.Status, Code: p.Code, Message: p.Detail}
		if len(p.Errors) > 0 {
			out.Items[i].Field = p.Errors[0].Pointer
		}
	}
	return out
}
