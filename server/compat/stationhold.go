package compat

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// A task of the station had no command: it held GPUs until somebody ended it, or its time was over. That is an
// allocation, whose name says that it is one of these.
const stationHold = "station task: "

// usualTimeout is for how long a task had its GPUs that did not say, in seconds.
const usualTimeout = 3600

type stationSubmission struct {
	TenantID    string `json:"tenant_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	GPURequest  int    `json:"gpu_request"`
	MemoryMB    int    `json:"memory_mb"`
	Priority    int    `json:"priority"`
	Timeout     int64  `json:"timeout"`
}

func submitStationTask(c *Call) (int, any, error) {
	in := stationSubmission{Timeout: usualTimeout}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := checkNumbers(bounded{"gpu_request", float64(in.GPURequest), 1, 100_000},
		bounded{"memory_mb", float64(in.MemoryMB), 0, 1 << 24}, bounded{"priority", float64(in.Priority), 0, 1_000_000},
		bounded{"timeout", float64(in.Timeout), 60, 30 * 24 * 3600}); err != nil {
		return 0, nil, err
	}
	if err := checkTenant(c, in.TenantID); err != nil {
		return 0, nil, err
	}
	var made contract.Allocation
	err := c.post("/v1/allocations", contract.AllocationCreate{GPUs: in.GPURequest, LeaseSeconds: in.Timeout,
		Name: stationHold + in.Name, Needs: anyGPU(contract.Needs{MinGPUMemoryMiB: in.MemoryMB}, "")}, &made)
	return http.StatusCreated, encodeStationHold(made), renamed(err, "gpus", "gpu_request", "min_gpu_memory_mib",
		"memory_mb", "lease_seconds", "timeout")
}

// holdState is what the state of a task was called, which ended by being ended, or by its time.
var holdState = map[string]string{"pending": "pending", "active": "running", "releasing": "running",
	"released": "cancelled", "cancelled": "cancelled", "expired": "failed", "failed": "failed"}

func encodeStationHold(a contract.Allocation) stationTask {
	return stationTask{ID: a.ID, TenantID: a.OrganizationID, Name: strings.TrimPrefix(a.Name, stationHold),
		GPURequest: a.GPUs, Timeout: a.LeaseSeconds, Status: holdState[a.State], CreatedAt: a.RequestedAt,
		StartedAt: a.ActiveAt, CompletedAt: a.EndedAt}
}

// isHold reports whether the route names a task that holds GPUs: others are jobs.
func isHold(c *Call) bool { return strings.HasPrefix(c.Param("id"), "alc_") }

func readStationHold(c *Call) (a contract.Allocation, err error) {
	if err = c.get(c.path("/v1/allocations"), nil, &a); err == nil && !strings.HasPrefix(a.Name, stationHold) {
		return a, problem.New(contract.CodeNotFound, "There is no such task.")
	}
	return a, err
}

// endStationHold gives the GPUs back.
func endStationHold(c *Call) (int, any, error) {
	if _, err := readStationHold(c); err != nil {
		return 0, nil, err
	}
	err := c.ask(inward.Request{Method: http.MethodDelete, Path: c.path("/v1/allocations"), Once: c.Once}, nil)
	if err != nil {
		return 0, nil, err
	}
	a, err := readStationHold(c)
	return http.StatusOK, encodeStationHold(a), err
}

// stationHolds are the tasks that hold GPUs, or have held them.
func stationHolds(c *Call, query url.Values) ([]stationTask, error) {
	asked := url.Values{"state": {"pending,active,releasing,released,failed,expired,cancelled"}}
	if o := query.Get("organization"); o != "" {
		asked.Set("organization", o)
	}
	all, _, err := list(c, "/v1/allocations", asked, 0, most, func(a contract.Allocation) bool {
		return strings.HasPrefix(a.Name, stationHold)
	})
	out := make([]stationTask, 0, len(all))
	for _, a := range all {
		out = append(out, encodeStationHold(a))
	}
	return out, err
}

// newestFirst puts tasks in order, and leaves out what is more than an answer may have.
func newestFirst(all []stationTask) []stationTask {
	slices.SortStableFunc(all, func(a, b stationTask) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return all[:min(len(all), most)]
}
