package compat

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

// jobRoutes are those of gpu-scheduler for its jobs.
func jobRoutes() []Route {
	return []Route{
		{http.MethodPost, "/api/v1/jobs", auth.Member, submitOldJob},
		{http.MethodGet, "/api/v1/jobs", auth.Viewer, listOldJobs},
		{http.MethodGet, "/api/v1/jobs/:id", auth.Viewer, readOldJob},
		{http.MethodDelete, "/api/v1/jobs/:id", auth.Member, cancelOldJob},
	}
}

type oldSubmission struct {
	TenantID          string            `json:"tenant_id"`
	Name              string            `json:"name"`
	Priority          int               `json:"priority"`
	GPUCount          int               `json:"gpu_count"`
	GPUMemoryMB       int               `json:"gpu_memory_mb"`
	CPUCores          int               `json:"cpu_cores"`
	MemoryMB          int               `json:"memory_mb"`
	Script            string            `json:"script"`
	Environment       map[string]string `json:"environment"`
	Image             string            `json:"image"`
	Command           []string          `json:"command"`
	Args              []string          `json:"args"`
	GangScheduling    bool              `json:"gang_scheduling"`
	MaxRuntimeMinutes int               `json:"max_runtime_minutes"`
}

// The least priorities of two tiers, medium and high.
const (
	mediumTier = 500
	highTier   = 1000
)

func submitOldJob(c *Call) (int, any, error) {
	var in oldSubmission
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := in.check(c); err != nil {
		return 0, nil, err
	}
	j := contract.JobCreate{Name: in.Name, Priority: tierOf(in.Priority), GPUs: in.GPUCount,
		Needs:   anyGPU(contract.Needs{MinGPUMemoryMiB: in.GPUMemoryMB, MinNodeMemoryMiB: in.MemoryMB}, ""),
		Command: append(append([]string{}, in.Command...), in.Args...), Environment: in.Environment,
		Image: in.Image, MaxRuntimeSeconds: int64(in.MaxRuntimeMinutes) * 60}
	if in.Script != "" {
		j.Command = append(shell(in.Script), append([]string{"script"}, in.Args...)...)
		if len(in.Args) == 0 {
			j.Command = shell(in.Script)
		}
	}
	job, err := submitJob(c, j)
	if err != nil {
		return 0, nil, renamed(err, "gpus", "gpu_count", "min_gpu_memory_mib", "gpu_memory_mb", "min_node_memory_mib",
			"memory_mb", "max_runtime_seconds", "max_runtime_minutes")
	}
	message := "Job submitted successfully"
	if in.CPUCores > 0 {
		message += "; cpu_cores is not kept back for it"
	}
	return http.StatusCreated, map[string]string{"job_id": job.ID, "status": "submitted", "message": message}, nil
}

// check refuses what the API could not see, or would take for something else.
func (in oldSubmission) check(c *Call) error {
	if err := checkNumbers(
		bounded{"priority", float64(in.Priority), 0, 1_000_000}, bounded{"gpu_count", float64(in.GPUCount), 1, 100_000},
		bounded{"gpu_memory_mb", float64(in.GPUMemoryMB), 0, 1 << 24},
		bounded{"cpu_cores", float64(in.CPUCores), 0, 1 << 16}, bounded{"memory_mb", float64(in.MemoryMB), 0, 1 << 30},
		bounded{"max_runtime_minutes", float64(in.MaxRuntimeMinutes), 0, 30 * 24 * 60}); err != nil {
		return err
	}
	if in.Script != "" && len(in.Command) > 0 {
		return problem.Invalid("script", "must not be given beside command", "leave one of them out")
	}
	return checkTenant(c, in.TenantID)
}

// checkTenant refuses the name of another tenant than the key's: whose a job is follows from the
// key alone.
func checkTenant(c *Call, idOrName string) error {
	own := auth.From(c.Context).OrganizationID
	if idOrName == "" || idOrName == own {
		return nil
	}
	var named contract.Organization
	err := c.get("/v1/organizations/"+url.PathEscape(idOrName), nil, &named)
	if err == nil && named.ID == own {
		return nil
	}
	return problem.Invalid("tenant_id", "must be the organization of the key, or left out", "use a key of that tenant")
}

func tierOf(priority int) string {
	switch {
	case priority == 0:
		return ""
	case priority < mediumTier:
		return "low"
	case priority < highTier:
		return "normal"
	}
	return "high"
}

// oldState is what a job's state was called.
var oldState = map[string]string{
	contract.JobPending: "pending", contract.JobHeld: "pending", contract.JobScheduled: "scheduled",
	contract.JobRunning: "running", contract.JobPreempted: "preempted", contract.JobCompleted: "completed",
	contract.JobFailed: "failed", contract.JobCancelled: "cancelled",
}

type oldJob struct {
	JobID         string           `json:"job_id"`
	Name          string           `json:"name,omitempty"`
	TenantID      string           `json:"tenant_id"`
	State         string           `json:"state"`
	Message       string           `json:"message"`
	AllocatedGPUs []string         `json:"allocated_gpus"`
	NodeName      string           `json:"node_name"`
	QueuePosition int              `json:"queue_position"`
	EstimatedWait *int64           `json:"estimated_wait"` // nanoseconds to the predicted start; null: none is predicted
	Logs          string           `json:"logs"`
	Metrics       map[string]int64 `json:"metrics"`
}

func encodeOldJob(j contract.Job, gpus []contract.GPU, now time.Time) oldJob {
	out := oldJob{JobID: j.ID, Name: j.Name, TenantID: j.OrganizationID, State: oldState[j.State],
		Message: cmp.Or(j.Detail, j.Reason), AllocatedGPUs: []string{}, QueuePosition: j.Position,
		Logs: fmt.Sprintf("/v1/jobs/%s/output", j.ID), Metrics: map[string]int64{"gpu_seconds": j.GPUSeconds}}
	for _, g := range gpus {
		out.AllocatedGPUs, out.NodeName = append(out.AllocatedGPUs, g.UUID), g.NodeID
	}
	if j.PredictedStart != nil && oldState[j.State] == "pending" {
		wait := max(j.PredictedStart.Likely.Sub(now), 0).Nanoseconds()
		out.EstimatedWait = &wait
	}
	return out
}

func listOldJobs(c *Call) (int, any, error) {
	state, err := c.oneOf("state", "pending", "scheduled", "running", "preempted", "completed", "failed", "cancelled")
	if err != nil {
		return 0, nil, err
	}
	limit, err := c.number("limit", 50, 1, most)
	if err != nil {
		return 0, nil, err
	}
	offset, err := c.number("offset", 0, 0, most)
	if err != nil {
		return 0, nil, err
	}
	query := jobsIn(oldState, state)
	if tenant := c.Query.Get("tenant_id"); tenant != "" {
		query.Set("organization", tenant)
	}
	jobs, more, err := list[contract.Job](c, "/v1/jobs", query, offset, limit, nil)
	if err != nil {
		return 0, nil, err
	}
	gpus, err := gpusOfJobs(c, jobs)
	out := make([]oldJob, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, encodeOldJob(j, gpus[j.AllocationID], c.Now))
	}
	return http.StatusOK, map[string]any{"jobs": out, "total": len(out), "more": more}, err
}

func readOldJob(c *Call) (int, any, error) {
	var job contract.Job
	if err := c.get(c.path("/v1/jobs"), url.Values{"position": {"true"}}, &job); err != nil {
		return 0, nil, err
	}
	gpus, err := gpusOfJobs(c, []contract.Job{job})
	return http.StatusOK, encodeOldJob(job, gpus[job.AllocationID], c.Now), err
}

func cancelOldJob(c *Call) (int, any, error) {
	err := c.post(c.path("/v1/jobs", "cancel"), nil, nil)
	return http.StatusOK, map[string]string{"message": "Job cancelled successfully"}, err
}
