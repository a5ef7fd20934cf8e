package compat

import (
	"net/http"
	"net/url"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
)

// stationRoutes are those of the desktop station's scheduler, and of go-scheduler's figures.
func stationRoutes() []Route {
	return []Route{
		{http.MethodGet, "/api/tasks", auth.Viewer, listStationTasks},
		{http.MethodGet, "/api/tasks/:id", auth.Viewer, readStationTask},
		{http.MethodDelete, "/api/tasks/:id", auth.Member, cancelStationTask},
		{http.MethodGet, "/api/tenants/:id", auth.Viewer, listTasksOfTenant},
		{http.MethodGet, "/api/stats", auth.Viewer, readStats},
		{http.MethodGet, "/api/monitor/metrics", auth.Viewer, readMonitor},
		{http.MethodGet, "/api/monitor/device/:id", auth.Viewer, readDevice},
		{http.MethodGet, "/gpu/metrics", auth.Viewer, readGPUMetrics},
		{http.MethodGet, "/queue/status", auth.Viewer, readQueueStatus},
	}
}

// stationState is what a task's state was called there.
var stationState = map[string]string{
	contract.JobPending: "pending", contract.JobHeld: "pending", contract.JobScheduled: "pending",
	contract.JobRunning: "running", contract.JobPreempted: "running", contract.JobCompleted: "completed",
	contract.JobFailed: "failed", contract.JobCancelled: "cancelled",
}

type stationTask struct {
	ID          string    `json:"id"`
	TenantID    string    `json:"tenant_id"`
	Name        string    `json:"name"`
	GPURequest  int       `json:"gpu_request"`
	Timeout     int64     `json:"timeout"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"created_at"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
}

func encodeStationTask(j contract.Job) stationTask {
	return stationTask{ID: j.ID, TenantID: j.OrganizationID, Name: j.Name, GPURequest: j.GPUs,
		Timeout: j.MaxRuntimeSeconds, Status: stationState[j.State], CreatedAt: j.SubmittedAt, StartedAt: j.StartedAt,
		CompletedAt: j.EndedAt}
}

func stationTasks(c *Call, query url.Values) (int, any, error) {
	jobs, _, err := list[contract.Job](c, "/v1/jobs", query, 0, most, nil)
	out := make([]stationTask, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, encodeStationTask(j))
	}
	return http.StatusOK, out, err
}

func listStationTasks(c *Call) (int, any, error) { return stationTasks(c, jobsIn(nil, "")) }

func listTasksOfTenant(c *Call) (int, any, error) {
	query := jobsIn(nil, "")
	query.Set("organization", c.Param("id"))
	return stationTasks(c, query)
}

func readStationTask(c *Call) (int, any, error) {
	var job contract.Job
	err := c.get(c.path("/v1/jobs"), nil, &job)
	return http.StatusOK, encodeStationTask(job), err
}

func cancelStationTask(c *Call) (int, any, error) {
	var job contract.Job
	err := c.post(c.path("/v1/jobs", "cancel"), nil, &job)
	return http.StatusOK, encodeStationTask(job), err
}

type stationTenant struct {
	MaxGPUs      int     `json:"max_gpus"`
	UsedGPUs     int     `json:"used_gpus"`
	UsagePercent float64 `json:"usage_percent"`
}

// readStats is of the tenants that the key may see.
func readStats(c *Call) (int, any, error) {
	pending, running, err := countJobs(c)
	if err != nil {
		return 0, nil, err
	}
	all, _, err := list[contract.Organization](c, "/v1/organizations", nil, 0, most, nil)
	if err != nil {
		return 0, nil, err
	}
	held, _, err := list[contract.Allocation](c, "/v1/allocations", url.Values{"state": {"active,releasing"}}, 0, most,
		nil)
	used := map[string]int{}
	for _, a := range held {
		used[a.OrganizationID] += a.GPUs
	}
	tenants := map[string]stationTenant{}
	for _, o := range all {
		t := stationTenant{MaxGPUs: o.Limits.MaxGPUs, UsedGPUs: used[o.ID]}
		if t.MaxGPUs > 0 {
			t.UsagePercent = 100 * float64(t.UsedGPUs) / float64(t.MaxGPUs)
		}
		tenants[o.Name] = t
	}
	return http.StatusOK, map[string]any{"pending_tasks": pending, "running_tasks": running, "tenants": tenants}, err
}

type device struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Allocated   bool      `json:"allocated"`
	MemoryTotal int       `json:"memory_total"`
	MemoryUsed  *int      `json:"memory_used"`
	Utilization *int      `json:"utilization"`
	Temperature *int      `json:"temperature"`
	PowerUsage  *float64  `json:"power_usage"`
	Timestamp   time.Time `json:"timestamp,omitzero"`
}

// encodeDevice says null of what nobody has seen.
func encodeDevice(g contract.GPU) device {
	out := device{ID: g.UUID, Name: g.Model, Allocated: g.State == "held", MemoryTotal: g.MemoryMiB}
	if s := g.Seen; s != nil {
		out.MemoryUsed, out.Utilization, out.Temperature = s.MemoryUsedMiB, s.Utilization, s.Temperature
		out.PowerUsage, out.Timestamp = s.Power, s.SeenAt
	}
	return out
}

func devices(c *Call) ([]device, error) {
	gpus, _, err := list[contract.GPU](c, "/v1/gpus", nil, 0, most, nil)
	out := make([]device, 0, len(gpus))
	for _, g := range gpus {
		out = append(out, encodeDevice(g))
	}
	return out, err
}

// mean is that of the figures that there are; null: there are none.
func mean(all []device, figure func(device) (float64, bool)) *float64 {
	sum, n := 0.0, 0
	for _, d := range all {
		if x, ok := figure(d); ok {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return nil
	}
	sum /= float64(n)
	return &sum
}

func whole(n *int) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

func readMonitor(c *Call) (int, any, error) {
	all, err := devices(c)
	if err != nil {
		return 0, nil, err
	}
	_, running, err := countJobs(c)
	allocated := 0
	for _, d := range all {
		if d.Allocated {
			allocated++
		}
	}
	return http.StatusOK, map[string]any{"total_gpus": len(all), "allocated_gpus": allocated,
		"avg_utilization":  mean(all, func(d device) (float64, bool) { return whole(d.Utilization) }),
		"avg_memory_usage": mean(all, func(d device) (float64, bool) { return whole(d.MemoryUsed) }),
		"avg_temperature":  mean(all, func(d device) (float64, bool) { return whole(d.Temperature) }),
		"avg_power_usage": mean(all, func(d device) (float64, bool) {
			if d.PowerUsage == nil {
				return 0, false
			}
			return *d.PowerUsage, true
		}),
		"device_metrics": all, "active_tasks": running}, err
}

func readDevice(c *Call) (int, any, error) {
	var g contract.GPU
	err := c.get(c.path("/v1/gpus"), nil, &g)
	return http.StatusOK, encodeDevice(g), err
}

func readGPUMetrics(c *Call) (int, any, error) {
	all, err := devices(c)
	return http.StatusOK, map[string]any{"gpus": all}, err
}

func readQueueStatus(c *Call) (int, any, error) {
	pending, running, err := countJobs(c)
	return http.StatusOK, map[string]int{"queue_size": pending, "running_tasks": running}, err
}

// healthRoutes answer anybody.
func healthRoutes() []Route {
	healthy := func(*Call) (int, any, error) { return http.StatusOK, map[string]string{"status": "healthy"}, nil }
	return []Route{{http.MethodGet, "/health", auth.Public, healthy}, {http.MethodGet, "/api/v1/health", auth.Public,
		healthy}}
}

// missing are routes of things that are not done here, and what is instead.
var missing = []struct{ method, path, detail, instead, command string }{
	{http.MethodPut, "/api/v1/quota", "The split between online and batch work is each pool's own.",
		"Set online_share of a pool: PATCH /v1/pools/{id}", "forewarm pools edit --help"},
	{http.MethodPut, below + "/gpu/:id/heartbeat", "Nodes report by their daemon, with a key of its own.",
		"Run forewarm-node on the node, which sends PUT /v1/nodes/{id}/heartbeat", "forewarm nodes join --help"},
	{http.MethodPost, "/api/tasks", "A task there had no command to run.",
		"To run a command, POST /v1/jobs; to hold GPUs, POST /v1/allocations", ""},
	{http.MethodPost, "/api/login", "There are no passwords: requests carry an API key.",
		"Send the header Authorization: Bearer <key>", "forewarm key create --help"},
	{http.MethodGet, "/api/user", "Who asks is said elsewhere.", "GET /v1/whoami", "forewarm whoami"},
	{http.MethodGet, "/api/tenant", "Who asks is said elsewhere.", "GET /v1/whoami", "forewarm whoami"},
	{http.MethodGet, "/api/monitor/history", "The figures of devices are not kept.",
		"Have Prometheus collect /metrics", ""},
	{http.MethodGet, "/api/monitor/history/:id", "The figures of devices are not kept.",
		"Have Prometheus collect /metrics", ""},
}

// missingRoutes answer that a thing is not done here. What they say is no secret, but who asks is
// told first that a key is needed.
func missingRoutes() []Route {
	var out []Route
	for _, m := range missing {
		out = append(out, Route{m.method, m.path, auth.Viewer, func(*Call) (int, any, error) {
			return 0, nil, notOffered(m.detail, m.instead, m.command)
		}})
	}
	return out
}
