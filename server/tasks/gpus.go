package tasks

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// mostGPUs is how many an answer has.
const mostGPUs = 200

// GetGPUStatus implements TaskService.
func (s *service) GetGPUStatus(ctx context.Context, r *connect.Request[forewarmv1.GetGPUStatusRequest]) (
	*connect.Response[forewarmv1.GetGPUStatusResponse], error) {
	size := cmp.Or(r.Msg.GetPageSize(), mostGPUs)
	if size < 1 || size > mostGPUs {
		return nil, s.refused(ctx, problem.Invalid("page_size", "must be from 1 to 200, or 0", ""))
	}
	query := url.Values{"limit": {strconv.Itoa(int(size))}}
	for name, value := range map[string]string{"pool": r.Msg.GetPool(), "cursor": r.Msg.GetPageToken()} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var found contract.GPUList
	if _, err := s.API.Ask(ctx, inward.Request{Method: http.MethodGet, Path: "/v1/gpus", Query: query},
		&found); err != nil {
		return nil, s.refused(ctx, renamePage(err))
	}
	running, err := s.tasksOn(ctx, found.Items)
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	out := &forewarmv1.GetGPUStatusResponse{NextPageToken: found.NextCursor, Total: int32Of(found.Totals.Total),
		Free: int32Of(found.Totals.Free)}
	for _, g := range found.Items {
		out.Gpus = append(out.Gpus, encodeGPU(g, running[g.AllocationID]))
	}
	return connect.NewResponse(out), nil
}

// pageFields are those of a page whose names in the API are others.
var pageFields = strings.NewReplacer("next_cursor", "next_page_token", "cursor", "page_token")

// renamePage has a problem name the page that was asked for as it was.
func renamePage(err error) error {
	p, ok := err.(*problem.Problem) //nolint:errorlint // it is the API's own answer
	if !ok {
		return err
	}
	p.Detail = pageFields.Replace(p.Detail)
	for i, e := range p.Errors {
		p.Errors[i].Pointer, p.Errors[i].Message = pageFields.Replace(e.Pointer), pageFields.Replace(e.Message)
	}
	return p
}

// tasksOn are the ids of the tasks that have GPUs, by allocation.
func (s *service) tasksOn(ctx context.Context, gpus []contract.GPU) (map[string][]string, error) {
	held := false
	for _, g := range gpus {
		held = held || g.AllocationID != ""
	}
	out := map[string][]string{}
	query := url.Values{"state": {contract.JobScheduled + "," + contract.JobRunning + "," + contract.JobPreempted},
		"limit": {"200"}}
	for held {
		var jobs contract.List[contract.Job]
		if _, err := s.API.Ask(ctx, inward.Request{Method: http.MethodGet, Path: "/v1/jobs", Query: query},
			&jobs); err != nil {
			return nil, err
		}
		for _, j := range jobs.Items {
			out[j.AllocationID] = append(out[j.AllocationID], j.ID)
		}
		query.Set("cursor", jobs.NextCursor)
		held = jobs.NextCursor != ""
	}
	return out, nil
}

func encodeGPU(g contract.GPU, running []string) *forewarmv1.GPUStatus {
	out := &forewarmv1.GPUStatus{Uuid: g.UUID, NodeId: g.NodeID, Index: int32Of(g.Index), Model: g.Model,
		State: g.State, Health: g.Health, Pool: cmp.Or(g.PoolName, g.PoolID), AllocationId: g.AllocationID,
		MemoryTotalMib: int64(g.MemoryMiB), Simulated: g.Simulated, RunningTasks: running}
	if seen := g.Seen; seen != nil {
		out.SeenAtMs, out.Simulated = millis(seen.SeenAt), g.Simulated || seen.Simulated
		out.MemoryUsedMib, out.UtilizationPercent = int64Pointer(seen.MemoryUsedMiB), int32Pointer(seen.Utilization)
		out.MemoryBusyPercent, out.TemperatureCelsius = int32Pointer(seen.MemoryBusy), int32Pointer(seen.Temperature)
		out.PowerWatts = seen.Power
	}
	return out
}
