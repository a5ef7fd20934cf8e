// Package tasks serves TaskService, which programs that run workflows call over gRPC, gRPC-Web
// or Connect. A task is a job, and each call is the request of the API that does the same.
package tasks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/events"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// MostMessage bounds what a call sends, in bytes.
const MostMessage = 1 << 20

// Config is what the service works with.
type Config struct {
	API  inward.API
	Feed *events.Feed
	// Follow is what whoever asks may see of the journal, for as long as its key may follow it.
	Follow func(context.Context, ledger.EventFilter) events.Following
	IDs    ids.Source // of requests that name no task
	Clock  clock.Clock
	Log    *slog.Logger
}

// NewHandler returns the handler of TaskService, for requests whose key was proved.
func NewHandler(c Config) http.Handler {
	_, h := forewarmv1connect.NewTaskServiceHandler(&service{c}, connect.WithReadMaxBytes(MostMessage),
		connect.WithCodec(strictJSON{}))
	return h
}

type service struct{ Config }

// userLabel is the variable that has the label of a task's user.
const userLabel = "FOREWARM_TASK_USER"

// mostTaskID bounds a caller's own id, in characters: it is the job's name.
const mostTaskID = 63

// SubmitTask implements TaskService.
func (s *service) SubmitTask(ctx context.Context, r *connect.Request[forewarmv1.SubmitTaskRequest]) (
	*connect.Response[forewarmv1.SubmitTaskResponse], error) {
	body, err := decodeTask(r.Msg)
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	var made contract.JobsSubmitted
	header, err := s.API.Ask(ctx, inward.Request{Method: http.MethodPost, Path: "/v1/jobs", Body: body,
		Once: s.onceOf(r.Msg.GetTaskId())}, &made)
	if err != nil {
		return nil, s.refused(ctx, renameFields(err))
	}
	repeated := header.Get(contract.HeaderIdempotencyReplayed) != ""
	task := made.Jobs[0]
	if repeated { // what is stored is of then
		if task, err = s.readTask(ctx, task.ID); err != nil {
			return nil, s.refused(ctx, err)
		}
	}
	return connect.NewResponse(&forewarmv1.SubmitTaskResponse{Task: encodeTask(task), RepeatedCall: repeated}), nil
}

// onceOf is the idempotency key of a submission: the same for the same task, whatever its id is
// made of.
func (s *service) onceOf(taskID string) string {
	if taskID == "" {
		return "call-" + s.IDs.New(ids.Request)
	}
	sum := sha256.Sum256([]byte(taskID))
	return "task-" + hex.EncodeToString(sum[:])
}

// decodeTask is a task as the API takes it. What the API checks is left to it; what it could not
// see, because the wire has no absence, is checked here.
func decodeTask(m *forewarmv1.SubmitTaskRequest) (contract.JobCreate, error) {
	for _, n := range []struct {
		field string
		value int64
		most  int64
	}{
		{"gpus", int64(m.GetGpus()), 100_000},
		{"gpu_memory_required", m.GetGpuMemoryRequired(), 1 << 24},
		{"max_runtime_seconds", m.GetMaxRuntimeSeconds(), 30 * 24 * 3600},
		{"retries", int64(m.GetRetries()), 100},
	} {
		if n.value < 0 || n.value > n.most {
			return contract.JobCreate{}, problem.Invalid(n.field, "must be from 0 to "+formatInt(n.most), "")
		}
	}
	if strings.HasPrefix(m.GetTaskId(), ids.Job+"_") {
		return contract.JobCreate{}, problem.Invalid("task_id", "must not look like an id of ours", "")
	}
	priority, known := priorities[m.GetPriority()]
	if !known {
		return contract.JobCreate{}, problem.Invalid("priority", "must be one of TaskPriority", "")
	}
	body := contract.JobCreate{Name: m.GetTaskId(), Pool: m.GetPool(), Model: m.GetModel(),
		Needs: contract.Needs{MinGPUMemoryMiB: int(m.GetGpuMemoryRequired())}, GPUs: int(cmp.Or(m.GetGpus(), 1)),
		Command: append([]string{}, m.GetCommand()...), Directory: m.GetDirectory(), Input: m.GetInput(),
		Environment: map[string]string{}, Priority: priority, MaxRuntimeSeconds: m.GetMaxRuntimeSeconds()}
	for name, value := range m.GetEnvironment() {
		body.Environment[name] = value
	}
	if m.GetUserId() != "" {
		body.Environment[userLabel] = m.GetUserId()
	}
	if body.Pool == "" && body.Model == "" {
		body.MinGPUMemoryMiB = max(1, body.MinGPUMemoryMiB) // any: the API wants to be told that much
	}
	if m.GetRetries() > 0 {
		body.Retries = &contract.JobRetries{Failed: int(m.GetRetries()), Lost: usualLosses}
	}
	return body, nil
}

// usualLosses is how often a task is tried again after the loss of its node, as the API's jobs are.
const usualLosses = 3

// fields are those of a message whose names in the API are others.
var fields = strings.NewReplacer("/min_gpu_memory_mib", "/gpu_memory_required", "/name", "/task_id",
	"/retries/failed", "/retries")

// detailFields are those of them that have a name of their own in sentences.
var detailFields = strings.NewReplacer("min_gpu_memory_mib", "gpu_memory_required", "retries.failed", "retries")

// beganWithName is a sentence on the field of the API that has the caller's own id.
var beganWithName = regexp.MustCompile(`^/?name `)

// renameFields has a problem name the fields that were sent.
func renameFields(err error) error {
	p, ok := err.(*problem.Problem) //nolint:errorlint // it is the API's own answer
	if !ok {
		return err
	}
	if p.Code == contract.CodeIdempotencyKeyReused {
		return problem.New(p.Code, "This task_id was used before for another task.").
			Field(contract.FieldError{Pointer: "/task_id", Code: "reused", Message: "was used before for another task"}).
			Fix("Send a new task_id, or ask for the task of that id", "")
	}
	p.Detail = beganWithName.ReplaceAllString(detailFields.Replace(p.Detail), "task_id ")
	for i := range p.Errors {
		p.Errors[i].Pointer = fields.Replace(p.Errors[i].Pointer)
	}
	return p
}

// GetTaskStatus implements TaskService.
func (s *service) GetTaskStatus(ctx context.Context, r *connect.Request[forewarmv1.GetTaskStatusRequest]) (
	*connect.Response[forewarmv1.GetTaskStatusResponse], error) {
	task, err := s.findTask(ctx, r.Msg.GetTaskId())
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	return connect.NewResponse(&forewarmv1.GetTaskStatusResponse{Task: encodeTask(task)}), nil
}

// CancelTask implements TaskService.
func (s *service) CancelTask(ctx context.Context, r *connect.Request[forewarmv1.CancelTaskRequest]) (
	*connect.Response[forewarmv1.CancelTaskResponse], error) {
	task, err := s.findTask(ctx, r.Msg.GetTaskId())
	if err == nil {
		_, err = s.API.Ask(ctx, inward.Request{Method: http.MethodPost,
			Path: "/v1/jobs/" + url.PathEscape(task.ID) + "/cancel"}, &task)
	}
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	return connect.NewResponse(&forewarmv1.CancelTaskResponse{Task: encodeTask(task)}), nil
}

// findTask is the task of an id, which is ours or its caller's own.
func (s *service) findTask(ctx context.Context, id string) (contract.Job, error) {
	if id == "" {
		return contract.Job{}, problem.Invalid("task_id", "must name a task", "")
	}
	if strings.HasPrefix(id, ids.Job+"_") {
		return s.readTask(ctx, id)
	}
	if len(id) > mostTaskID {
		return contract.Job{}, ledger.ErrNotFound
	}
	var named contract.List[contract.Job]
	query := url.Values{"name": {id}, "all": {"true"}, "limit": {"1"}}
	if organization := auth.From(ctx).OrganizationID; organization != "" {
		query.Set("organization", organization) // an operator's own, too: others' names are not its
	}
	if _, err := s.API.Ask(ctx, inward.Request{Method: http.MethodGet, Path: "/v1/jobs", Query: query},
		&named); err != nil {
		return contract.Job{}, err
	}
	if len(named.Items) == 0 {
		return contract.Job{}, ledger.ErrNotFound
	}
	return s.readTask(ctx, named.Items[0].ID)
}

// readTask reads a job, with its place in the queue.
func (s *service) readTask(ctx context.Context, id string) (out contract.Job, err error) {
	_, err = s.API.Ask(ctx, inward.Request{Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(id),
		Query: url.Values{"position": {"true"}}}, &out)
	return out, err
}
