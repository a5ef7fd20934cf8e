package compat

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

// dgpuRoutes are those of dgpu-scheduler.
func dgpuRoutes() []Route {
	return []Route{
		{http.MethodPost, "/api/v1/tasks", auth.Member, submitDGPUTask},
		{http.MethodGet, "/api/v1/tasks", auth.Viewer, listDGPUTasks},
		{http.MethodGet, "/api/v1/tasks/:id", auth.Viewer, readDGPUTask},
		{http.MethodDelete, "/api/v1/tasks/:id", auth.Member, cancelDGPUTask},
		{http.MethodGet, "/api/v1/gpus", auth.Viewer, listDGPUs},
		{http.MethodGet, "/api/v1/quota", auth.Viewer, readDGPUQuota},
		{http.MethodPut, "/api/v1/quota", auth.Operator, changeDGPUQuota},
	}
}

type dgpuSubmission struct {
	Priority string            `json:"priority"`
	GPUCount int               `json:"gpu_count"`
	GPUModel string            `json:"gpu_model"`
	Command  string            `json:"command"`
	Env      map[string]string `json:"env"`
}

type dgpuTask struct {
	ID            string            `json:"id"`
	TaskID        string            `json:"task_id"` // its other name in the old documents
	Priority      string            `json:"priority"`
	GPUCount      int               `json:"gpu_count"`
	GPUModel      string            `json:"gpu_model,omitempty"`
	Command       string            `json:"command"`
	Env           map[string]string `json:"env,omitempty"`
	Status        string            `json:"status"`
	AssignedGPUs  []string          `json:"assigned_gpus"`
	AllocatedGPUs []string          `json:"allocated_gpus"` // likewise
	CreatedAt     time.Time         `json:"created_at"`
	StartedAt     time.Time         `json:"started_at,omitzero"`
	FinishedAt    time.Time         `json:"finished_at,omitzero"`
	Error         string            `json:"error,omitempty"`
}

func submitDGPUTask(c *Call) (int, any, error) {
	var in dgpuSubmission
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := checkNumbers(bounded{"gpu_count", float64(in.GPUCount), 1, 100_000}); err != nil {
		return 0, nil, err
	}
	switch {
	case in.Priority != "high" && in.Priority != "low":
		return 0, nil, problem.Invalid("priority", "must be high or low", "")
	case in.Command == "":
		return 0, nil, problem.Invalid("command", "must not be empty", "")
	}
	job, err := submitJob(c, contract.JobCreate{Priority: in.Priority, GPUs: in.GPUCount, Model: in.GPUModel,
		Needs:   anyGPU(contract.Needs{}, in.GPUModel),
		Command: shell(in.Command), Environment: in.Env})
	if err != nil {
		return 0, nil, renamed(err, "gpus", "gpu_count", "model", "gpu_model", "environment", "env")
	}
	return http.StatusCreated, map[string]any{"task_id": job.ID, "status": dgpuStatus[job.State],
		"created_at": job.SubmittedAt}, nil
}

// submitJob submits one job.
func submitJob(c *Call, j contract.JobCreate) (contract.Job, error) {
	var made contract.JobsSubmitted
	if err := c.post("/v1/jobs", j, &made); err != nil {
		return contract.Job{}, err
	}
	return made.Jobs[0], nil
}

// dgpuStatus is what a task's status was called.
var dgpuStatus = map[string]string{
	contract.JobPending: "pending", contract.JobHeld: "pending", contract.JobScheduled: "pending",
	contract.JobRunning: "running", contract.JobPreempted: "running", contract.JobCompleted: "success",
	contract.JobFailed: "failed", contract.JobCancelled: "failed",
}

// statesOf are the states of jobs that an old status stands for.
func statesOf(old map[string]string, status string) string {
	var out []string
	for _, state := range []string{contract.JobPending, contract.JobHeld, contract.JobScheduled, contract.JobRunning,
		contract.JobPreempted, contract.JobCompleted, contract.JobFailed, contract.JobCancelled} {
		if old[state] == status {
			out = append(out, state)
		}
	}
	return strings.Join(out, ",")
}

// jobsIn is the query of jobs with an old status; empty: of all.
func jobsIn(old map[string]string, status string) url.Values {
	if status == "" {
		return url.Values{"all": {"true"}}
	}
	return url.Values{"state": {statesOf(old, status)}}
}

func listDGPUTasks(c *Call) (int, any, error) {
	status, err := c.oneOf("status", "pending", "running", "success", "failed")
	if err != nil {
		return 0, nil, err
	}
	priority, err := c.oneOf("priority", "high", "low")
	if err != nil {
		return 0, nil, err
	}
	limit, err := c.number("limit", 50, 1, most)
	if err != nil {
		return 0, nil, err
	}
	jobs, _, err := list(c, "/v1/jobs", jobsIn(dgpuStatus, status), 0, limit, func(j contract.Job) bool {
		return priority == "" || j.Priority == priority
	})
	if err != nil {
		return 0, nil, err
	}
	gpus, err := gpusOfJobs(c, jobs)
	out := make([]dgpuTask, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, encodeDGPUTask(j, gpus[j.AllocationID]))
	}
	return http.StatusOK, map[string]any{"tasks": out, "total": len(out)}, err
}

func readDGPUTask(c *Call) (int, any, error) {
	var job contract.Job
	if err := c.get(c.path("/v1/jobs"), nil, &job); err != nil {
		return 0, nil, err
	}
	gpus, err := gpusOfJobs(c, []contract.Job{job})
	return http.StatusOK, encodeDGPUTask(job, gpus[job.AllocationID]), err
}

func cancelDGPUTask(c *Call) (int, any, error) {
	err := c.post(c.path("/v1/jobs", "cancel"), nil, nil)
	return http.StatusOK, map[string]string{"message": "Task cancelled"}, err
}

// gpusOfJobs are the devices of those of the jobs that have some now, by allocation.
func gpusOfJobs(c *Call, jobs []contract.Job) (map[string][]contract.GPU, error) {
	out := map[string][]contract.GPU{}
	for _, j := range jobs {
		if dgpuStatus[j.State] == "running" || j.State == contract.JobScheduled {
			out[j.AllocationID] = nil
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	gpus, _, err := list(c, "/v1/gpus", url.Values{"state": {"held"}}, 0, most, func(g contract.GPU) bool {
		_, wanted := out[g.AllocationID]
		return wanted
	})
	for _, g := range gpus {
		out[g.AllocationID] = append(out[g.AllocationID], g)
	}
	return out, err
}

func encodeDGPUTask(j contract.Job, gpus []contract.GPU) dgpuTask {
	out := dgpuTask{ID: j.ID, TaskID: j.ID, Priority: j.Priority, GPUCount: j.GPUs, Command: commandText(j.Command),
		Env: j.Environment, Status: dgpuStatus[j.State], AssignedGPUs: []string{}, CreatedAt: j.SubmittedAt,
		StartedAt: j.StartedAt, FinishedAt: j.EndedAt}
	for _, g := range gpus {
		out.AssignedGPUs, out.GPUModel = append(out.AssignedGPUs, g.UUID), g.Model
	}
	out.AllocatedGPUs = out.AssignedGPUs
	if out.Status == "failed" {
		out.Error = cmp.Or(j.Detail, j.Reason)
	}
	if j.State == contract.JobCancelled {
		out.Error = j.State
	}
	return out
}

type dgpu struct {
	ID          string    `json:"id"`
	NodeID      string    `json:"node_id"`
	DeviceIndex int       `json:"device_index"`
	Model       string    `json:"model"`
	Memory      int       `json:"memory"`
	Status      string    `json:"status"`
	CurrentTask string    `json:"current_task,omitempty"`
	UpdatedAt   time.Time `json:"updated_at,omitzero"`
}

// dgpuState is what a device's state was called.
var dgpuState = map[string]string{"free": "idle", "held": "busy", "booked": "busy", "coming": "offline",
	"unavailable": "offline"}

func listDGPUs(c *Call) (int, any, error) {
	gpus, _, err := list[contract.GPU](c, "/v1/gpus", nil, 0, most, nil)
	if err != nil {
		return 0, nil, err
	}
	tasks, err := tasksOnGPUs(c)
	counts := map[string]int{}
	out := make([]dgpu, 0, len(gpus))
	for _, g := range gpus {
		d := dgpu{ID: g.UUID, NodeID: g.NodeID, DeviceIndex: g.Index, Model: g.Model, Memory: g.MemoryMiB,
			Status: dgpuState[g.State], CurrentTask: tasks[g.AllocationID]}
		if g.Seen != nil {
			d.UpdatedAt = g.Seen.SeenAt
		}
		counts[d.Status]++
		out = append(out, d)
	}
	return http.StatusOK, map[string]any{"total": len(out), "idle": counts["idle"], "busy": counts["busy"],
		"offline": counts["offline"], "gpus": out}, err
}

// tasksOnGPUs are the jobs that have GPUs, by allocation.
func tasksOnGPUs(c *Call) (map[string]string, error) {
	jobs, _, err := list[contract.Job](c, "/v1/jobs", url.Values{"state": {"scheduled,running,preempted"}}, 0, most, nil)
	out := map[string]string{}
	for _, j := range jobs {
		out[j.AllocationID] = j.ID
	}
	return out, err
}

// dgpuShare is one side of the split between online and batch work.
type dgpuShare struct {
	Quota     int `json:"quota"`
	Used      int `json:"used"`
	Available int `json:"available"`
}

// readDGPUQuota adds up the splits of all pools that the key may see. A pool that is not split is
// all online. Used is what the key may see of it.
func readDGPUQuota(c *Call) (int, any, error) {
	pools, _, err := list[contract.Pool](c, "/v1/pools", nil, 0, most, nil)
	if err != nil {
		return 0, nil, err
	}
	total, online, batch, isSplit := 0, dgpuShare{}, dgpuShare{}, map[string]bool{}
	for _, p := range pools {
		n := p.MaxNodes * p.GPUsPerNode
		share := n
		if p.OnlineShare > 0 {
			isSplit[p.ID] = true
			share = onlineGPUs(n, p.OnlineShare)
		}
		total, online.Quota, batch.Quota = total+n, online.Quota+share, batch.Quota+n-share
	}
	online.Used, batch.Used, err = usedOfSides(c, func(poolID string) bool { return isSplit[poolID] })
	online.Available, batch.Available = max(0, online.Quota-online.Used), max(0, batch.Quota-batch.Used)
	return http.StatusOK, map[string]any{"total_gpus": total, "online": online, "batch": batch}, err
}

// usedOfSides are the GPUs that online and batch work have, of those that the key may see. In a pool that is not split
// all are online.
func usedOfSides(c *Call, isSplit func(poolID string) bool) (online, batch int, err error) {
	held, _, err := list[contract.Allocation](c, "/v1/allocations", url.Values{"state": {"pending,active,releasing"}}, 0,
		most, nil)
	for _, a := range held {
		if a.Workload == "batch" && isSplit(a.PoolID) {
			batch += a.GPUs
		} else {
			online += a.GPUs
		}
	}
	return online, batch, err
}
