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
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

// BatchPath is the route whose body may be larger than others'.
const BatchPath = "/v1/reservations/batch"

// MaxBatchBody is the largest body of a batch: some 800 bytes for each request.
const MaxBatchBody = 8 << 20

func (a *API) registerBatches() {
	schema := a.reservationSchema()
	huma.Register(a.huma, huma.Operation{
		OperationID: "createReservations", Method: http.MethodPost, Path: BatchPath, Tags: []string{"bookings"},
		Summary: "Get up to 10,000 promises at once", MaxBodyBytes: MaxBatchBody, SkipValidateBody: true,
		Metadata: map[string]any{keyRequired: true},
		Description: "A JSON array, or one JSON object on each line. All that is booked is booked in one " +
			"transaction, in the given order; a request that is refused, or that breaks the schema, does not stop " +
			"the others. The journal has the first 10 refusals and the number of the rest. " +
			"A request that the batch had no time for has the status 503 and the code pool-busy: send it again in " +
			"another batch.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json":     {Schema: &huma.Schema{Type: huma.TypeArray, Items: schema}},
			"application/x-ndjson": {Schema: schema},
		}},
	}, func(ctx context.Context, in *struct {
		KeyRequired
		RawBody []byte
	},
	) (*Created[contract.BatchResults], error) {
		out, err := a.createReservations(ctx, in.KeyRequired, in.RawBody)
		if err != nil {
			return nil, a.toProblem(ctx, operation{id: "createReservations"}, "", err)
		}
		return out, nil
	})
}

func (a *API) createReservations(ctx context.Context, in KeyRequired,
	body []byte) (*Created[contract.BatchResults], error) {
	if err := in.requireKey(); err != nil {
		return nil, err
	}
	batch, err := a.decodeBatch(body)
	if err != nil {
		return nil, err
	}
	o := ledger.Once{Route: "POST " + BatchPath, Key: in.Key, LockHint: ledger.BatchLockHint(batch), Load: len(batch)}
	sum := sha256.Sum256(body) // of the text: a sequence of JSON values is none itself
	return runOnceLocking(ctx, a, o, sum[:], func(ctx context.Context, a *API) (int, contract.BatchResults, error) {
		outcomes, err := a.Ledger.ReserveMany(ctx, auth.From(ctx), batch)
		if err != nil {
			return 0, contract.BatchResults{}, err
		}
		return http.StatusOK, encodeBatch(outcomes), nil
	})
}

// decodeBatch reads a JSON array or a sequence of JSON objects.
func (a *API) decodeBatch(body []byte) ([]ledger.BatchItem, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	array := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))
	if array {
		if _, err := dec.Token(); err != nil {
			return nil, notABatch(0, err)
		}
	}
	var batch []ledger.BatchItem
	check := a.newItemCheck()
	for dec.More() {
		if len(batch) == ledger.MaxBatch {
			return nil, problem.Invalid("", fmt.Sprintf("must hold at most %d requests", ledger.MaxBatch),
				"Send the rest in another batch")
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, notABatch(len(batch), err)
		}
		batch = append(batch, a.batchItem(raw, check))
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

// batchItem reads one request, and checks what is checked of one that comes alone.
func (a *API) batchItem(raw json.RawMessage, check *itemCheck) ledger.BatchItem {
	if p := check.findProblem(raw); p != nil {
		return ledger.BatchItem{Invalid: p}
	}
	var b contract.ReservationCreate
	if err := json.Unmarshal(raw, &b); err != nil {
		return ledger.BatchItem{Invalid: malformedItem("", err.Error())}
	}
	req, err := a.reserveRequest(b)
	return ledger.BatchItem{Request: req, Invalid: err}
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
			out.Items[i] = contract.BatchResult{Index: i, Status: reservationStatus(o.Reservation), ID: o.Reservation.ID,
				State: string(o.Reservation.State())}
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
