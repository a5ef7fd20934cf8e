package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

type jobBatch = batch[ledger.JobCommand]

var submitJobBatch = operation.Change[jobBatch, []ledger.JobOutcome, contract.JobBatchResults]{
	Operation: operation.Operation{ID: "submitJobBatch", Method: http.MethodPost, Path: "/jobs/batch", Tag: "jobs",
		Policy: auth.Member, MaxBody: MaxBatchBody, Summary: "Submit up to 10,000 jobs at once"},
	Lock:  func(b jobBatch) *ledger.LockHint { return ledger.JobBatchLockHint(b.items) },
	Count: func(b jobBatch) int { return len(b.items) },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b jobBatch) ([]ledger.JobOutcome, error) {
		return l.SubmitMany(ctx, actor, b.items)
	},
	Encode: forAnybody(encodeJobBatch),
}

const linesType = "application/x-ndjson"

func (a *API) describeJobBatch(op *huma.Operation) {
	schemas := a.huma.OpenAPI().Components.Schemas
	op.SkipValidateBody = true
	op.Description = "A JSON object with items, or, as application/x-ndjson, one job on each line, which is answered " +
		"with one result on each line. All are submitted in one transaction, in the given order; a job " +
		"that is refused, or that violates the schema, does not stop the others. Arrays count for each of" +
		" their jobs: all together may have 10,000 jobs. A job that the batch had no time for gets status" +
		" 503 and code pool-busy: send it again in another batch."
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: schemas.Schema(reflect.TypeFor[contract.JobBatch](), true, "")},
		linesType:          {Schema: itemSchema[contract.JobCreate](a)},
	}}
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: schemas.Schema(reflect.TypeFor[contract.JobBatchResults](), true, "")},
		linesType:          {Schema: schemas.Schema(reflect.TypeFor[contract.JobBatchResult](), true, "")},
	}}}
}

// jobBatchInput is a batch of jobs as it comes.
type jobBatchInput struct {
	KeyRequired
	DryRun
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte
}

// jobBatchOutput answers it in the form in which it came.
type jobBatchOutput struct {
	Status      int
	ContentType string `header:"Content-Type"`
	Replayed    string `header:"Idempotency-Replayed"`
	Body        []byte
}

func submitBatch(ctx context.Context, a *API, in *jobBatchInput) (*jobBatchOutput, error) {
	if _, err := in.idempotencyKey(); err != nil && !in.Dry { // before a body of megabytes is read
		return nil, err
	}
	kind, err := in.kind()
	if err != nil {
		return nil, err
	}
	body := in.RawBody
	if kind != linesType {
		if body, err = unwrapItems(body); err != nil {
			return nil, err
		}
	} else if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return nil, problem.Invalid("", "must be one JSON object on each line", "Send an array as the items of a JSON object")
	}
	items, err := decodeBatch(a, a.jobItems(ctx), body)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(kind+"\n"), in.RawBody...))
	got, _, err := changeOnce(ctx, a, submitJobBatch, in, jobBatch{Text: sum[:], items: items})
	if err != nil {
		return nil, err
	}
	text, err := encodeAs(kind, got.Body)
	return &jobBatchOutput{Status: got.Status, ContentType: kind, Replayed: formatReplayed(got.Replayed), Body: text}, err
}

// kind is the form in which a batch comes, and its answer goes.
func (in *jobBatchInput) kind() (string, error) {
	if in.ContentType == "" {
		return "application/json", nil
	}
	kind, _, err := mime.ParseMediaType(in.ContentType)
	if err != nil || kind != "application/json" && kind != linesType {
		return "", problem.New(contract.CodeUnsupportedMediaType, "The body must be JSON, or lines of JSON.").
			Request("Send the header Content-Type: application/json, or " + linesType + " for a job on each line")
	}
	return kind, nil
}

// unwrapItems returns the array that is the items of a JSON object, which has nothing else.
func unwrapItems(body []byte) (items json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if brace, err := dec.Token(); err != nil || brace != json.Delim('{') {
		return nil, notItems("is no JSON object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, brokenItems(err)
		}
		if name != "items" || items != nil {
			return nil, problem.Invalid("", "must have items, once, and nothing else", "").Request(sendJobs)
		}
		if err := dec.Decode(&items); err != nil {
			return nil, brokenItems(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, brokenItems(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, notItems("has something after its JSON object")
	}
	if !bytes.HasPrefix(items, []byte("[")) {
		return nil, problem.Invalid("items", "must be an array", "").Request(sendJobs)
	}
	return items, nil
}

// brokenItems says where a batch is not valid JSON.
func brokenItems(err error) error {
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok && wrong.Offset > 0 {
		return notItems(fmt.Sprintf("is not valid JSON (at byte %d)", wrong.Offset))
	}
	return notItems("ends before its JSON object does")
}

func notItems(what string) error {
	return problem.New(contract.CodeMalformedJSON, "The batch "+what+".").Request(sendJobs)
}

const sendJobs = `Send {"items": [...]} with an array of jobs, or one JSON object on each line as ` + linesType

// jobItems reads submissions for whoever asks. The nodes of each pool are looked at once for their containers.
func (a *API) jobItems(ctx context.Context) itemForm[contract.JobCreate, ledger.JobCommand] {
	said := map[string]error{}
	checkContainers := func(pool string) error {
		err, known := said[pool]
		if !known {
			err = a.checkContainers(ctx, pool)
			said[pool] = err
		}
		return err
	}
	return itemForm[contract.JobCreate, ledger.JobCommand]{send: sendJobs,
		decode: func(b contract.JobCreate) (ledger.JobCommand, error) {
			if err := checkArray(b.Array); err != nil {
				return ledger.JobCommand{}, err
			}
			return decodeJob(b), checkImage(&b, checkContainers)
		}}
}

func encodeJobBatch(outcomes []ledger.JobOutcome) contract.JobBatchResults {
	out := contract.JobBatchResults{Items: make([]contract.JobBatchResult, len(outcomes))}
	for i, o := range outcomes {
		if o.Err != nil {
			p, field := refusalOf(o.Err)
			out.Refused++
			out.Items[i] = contract.JobBatchResult{Index: i, Status: p.Status, Code: p.Code, Message: p.Detail, Field: field}
			continue
		}
		first := o.Jobs[0]
		out.Accepted++
		out.Items[i] = contract.JobBatchResult{Index: i, Status: http.StatusCreated, ArrayID: first.Array.ID,
			State: string(first.State()), Jobs: len(o.Jobs)}
		if first.Array.ID == "" {
			out.Items[i].JobID = first.ID
		}
	}
	return out
}

// encodeAs writes results as one JSON value, or each on a line.
func encodeAs(kind string, r contract.JobBatchResults) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	if kind != linesType {
		err := enc.Encode(r)
		return out.Bytes(), err
	}
	for _, item := range r.Items {
		if err := enc.Encode(item); err != nil {
			return nil, fmt.Errorf("encoding what became of request %d: %w", item.Index, err)
		}
	}
	return out.Bytes(), nil
}
