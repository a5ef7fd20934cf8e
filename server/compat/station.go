package compat

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

// stationRoutes are those of the desktop station's scheduler, and of go-scheduler's figures.
func stationRoutes() []Route {
	return []Route{
		{http.MethodGet, "/api/tasks", auth.Viewer, listStationTasks},
		{http.MethodPost, "/api/tasks", auth.Member, submitStationTask},
		{http.MethodGet, "/api/tasks/:id", auth.Viewer, readStationTask},
		{http.MethodDelete, "/api/tasks/:id", auth.Member, cancelStationTask},
		{http.MethodGet, "/api/tenants/:id", auth.Viewer, listTasksOfTenant},
		{http.MethodGet, "/api/stats", auth.Viewer, readStats},
		{http.MethodGet, "/api/monitor/metrics", auth.Viewer, readMonitor},
		{http.MethodGet, "/api/monitor/device/:id", auth.Viewer, readDevice},
		{http.MethodGet, "/api/monitor/history/:id", auth.Viewer, readDeviceHistory},
		{http.MethodGet, "/api/user", auth.Viewer, readStationUser},
		{http.MethodGet, "/api/tenant", auth.Viewer, readStationTenant},
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
	if err != nil {
		return 0, nil, err
	}
	holds, err := stationHolds(c, query)
	return http.StatusOK, newestFirst(append(out, holds...)), err
}

func listStationTasks(c *Call) (int, any, error) { return stationTasks(c, jobsIn(nil, "")) }

func listTasksOfTenant(c *Call) (int, any, error) {
	var o contract.Organization
	if err := c.get(c.path("/v1/organizations"), nil, &o); err != nil {
		return 0, nil, err
	}
	query := jobsIn(nil, "")
	query.Set("organization", o.ID)
	return stationTasks(c, query)
}

func readStationTask(c *Call) (int, any, error) {
	if isHold(c) {
		a, err := readStationHold(c)
		return http.StatusOK, encodeStationHold(a), err
	}
	var job contract.Job
	err := c.get(c.path("/v1/jobs"), nil, &job)
	return http.StatusOK, encodeStationTask(job), err
}

func cancelStationTask(c *Call) (int, any, error) {
	if isHold(c) {
		return endStationHold(c)
	}
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
	used, err := gpusHeldBy(c)
	tenants := map[string]stationTenant{}
	for _, o := range all {
		tenants[o.Name] = encodeStationTenant(o, used)
	}
	return http.StatusOK, map[string]any{"pending_tasks": pending, "running_tasks": running, "tenants": tenants}, err
}

// gpusHeldBy are the GPUs that each organization holds, of those that the key may see.
func gpusHeldBy(c *Call) (map[string]int, error) {
	held, _, err := list[contract.Allocation](c, "/v1/allocations", url.Values{"state": {"active,releasing"}}, 0, most,
		nil)
	used := map[string]int{}
	for _, a := range held {
		used[a.OrganizationID] += a.GPUs
	}
	return used, err
}

func encodeStationTenant(o contract.Organization, used map[string]int) stationTenant {
	t := stationTenant{MaxGPUs: o.Limits.MaxGPUs, UsedGPUs: used[o.ID]}
	if t.MaxGPUs > 0 {
		t.UsagePercent = 100 * float64(t.UsedGPUs) / float64(t.MaxGPUs)
	}
	return t
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

type deviceSample struct {
	ID          string    `json:"id"`
	Timestamp   time.Time `json:"timestamp"`
	MemoryUsed  *int      `json:"memory_used"`
	Utilization *int      `json:"utilization"`
	Temperature *int      `json:"temperature"`
	PowerUsage  *float64  `json:"power_usage"`
}

// readDeviceHistory is of the last day, in steps of five minutes.
func readDeviceHistory(c *Call) (int, any, error) {
	var h contract.GPUHistory
	err := c.get(c.path("/v1/gpus", "history"), nil, &h)
	out := make([]deviceSample, 0, len(h.Items))
	for _, step := range h.Items {
		out = append(out, deviceSample{ID: h.UUID, Timestamp: step.Start, MemoryUsed: step.MemoryUsedMiBMean,
			Utilization: step.UtilizationMean, Temperature: step.TemperatureMax, PowerUsage: step.PowerMean})
	}
	return http.StatusOK, out, err
}

// readStationUser says who asks: whose key it is, or the key itself.
func readStationUser(c *Call) (int, any, error) {
	var w contract.Whoami
	err := c.get("/v1/whoami", nil, &w)
	return http.StatusOK, map[string]string{"id": cmp.Or(w.UserID, w.KeyID), "username": cmp.Or(w.UserEmail, w.KeyName),
		"role": w.Role, "tenant_id": w.OrganizationID}, err
}

// readStationTenant is the key's own.
func readStationTenant(c *Call) (int, any, error) {
	own := auth.From(c.Context).OrganizationID
	if own == "" {
		return 0, nil, problem.New(contract.CodeNotFound, "This key belongs to no tenant.")
	}
	var o contract.Organization
	if err := c.get("/v1/organizations/"+url.PathEscape(own), nil, &o); err != nil {
		return 0, nil, err
	}
	used, err := gpusHeldBy(c)
	return http.StatusOK, struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		stationTenant
	}{o.ID, o.Name, encodeStationTenant(o, used)}, err
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
	{http.MethodPut, below + "/gpu/:id/heartbeat", "Nodes report by their daemon, with a key of its own; a sign of life " +
		"that says nothing of the GPUs would hide that it is gone.",
		"Run forewarm-node on the node, which sends PUT /v1/nodes/{id}/heartbeat", "forewarm nodes join --help"},
	{http.MethodPost, "/api/login", "There are no passwords: requests carry an API key.",
		"Send the header Authorization: Bearer <key>", "forewarm key create --help"},
	{http.MethodGet, "/api/monitor/history", "The figures of all devices together are not kept.",
		"Read GET /api/monitor/history/{uuid} of a device, or have Prometheus collect /metrics", ""},
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
