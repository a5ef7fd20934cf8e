package compat

import (
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

// tenantRoutes are those of gpu-scheduler for its tenants, and for its cluster.
func tenantRoutes() []Route {
	return []Route{
		{http.MethodPost, "/api/v1/tenants", auth.Operator, createTenant},
		{http.MethodGet, "/api/v1/tenants", auth.Viewer, listTenants},
		{http.MethodGet, "/api/v1/tenants/:id", auth.Viewer, readTenant},
		{http.MethodGet, "/api/v1/cluster/status", auth.Viewer, readCluster},
	}
}

// tenantCreate has what people may set of a tenant. What it uses, it cannot say.
type tenantCreate struct {
	Name              string `json:"name"`
	Email             string `json:"email"`
	Organization      string `json:"organization"`
	MaxGPUs           int64  `json:"max_gpus"`
	MaxGPUMemoryMB    int64  `json:"max_gpu_memory_mb"`
	MaxCPUCores       int64  `json:"max_cpu_cores"`
	MaxMemoryMB       int64  `json:"max_memory_mb"`
	MaxConcurrentJobs int64  `json:"max_concurrent_jobs"`
	FairShareWeight   int64  `json:"fair_share_weight"`
	PriorityTier      string `json:"priority_tier"`
}

type tenant struct {
	ID                string    `json:"id"`
	Name              string    `json:"name"`
	MaxGPUs           int64     `json:"max_gpus"`
	MaxGPUMemoryMB    *int64    `json:"max_gpu_memory_mb,omitempty"`
	MaxCPUCores       *int64    `json:"max_cpu_cores,omitempty"`
	MaxMemoryMB       *int64    `json:"max_memory_mb,omitempty"`
	MaxConcurrentJobs *int64    `json:"max_concurrent_jobs,omitempty"`
	FairShareWeight   int       `json:"fair_share_weight,omitempty"`
	CreatedAt         time.Time `json:"created_at"`
}

func createTenant(c *Call) (int, any, error) {
	var in tenantCreate
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := checkNumbers(bounded{"max_gpus", float64(in.MaxGPUs), 0, 1_000_000},
		bounded{"max_gpu_memory_mb", float64(in.MaxGPUMemoryMB), 0, 1e12},
		bounded{"max_cpu_cores", float64(in.MaxCPUCores), 0, 1e9},
		bounded{"max_memory_mb", float64(in.MaxMemoryMB), 0, 1e12},
		bounded{"max_concurrent_jobs", float64(in.MaxConcurrentJobs), 0, 1e9},
		bounded{"fair_share_weight", float64(in.FairShareWeight), 0, 1000}); err != nil {
		return 0, nil, err
	}
	if in.PriorityTier != "" {
		return 0, nil, problem.Invalid("priority_tier", "is no tenant's: jobs have priorities",
			"leave it out, and give the tenant a fair_share_weight")
	}
	limits := contract.Limits{MaxGPUs: int(in.MaxGPUs), SpeculationPerDay: contract.Money{Amount: "0", Currency: "USD"},
		MaxGPUMemoryMiB: set(in.MaxGPUMemoryMB), MaxCPUs: set(in.MaxCPUCores), MaxMemoryMiB: set(in.MaxMemoryMB),
		MaxBookings: set(in.MaxConcurrentJobs), Weight: int(in.FairShareWeight)}
	var made contract.Organization
	err := c.post("/v1/organizations", contract.OrganizationCreate{Name: in.Name, Limits: limits}, &made)
	return http.StatusCreated, encodeTenant(made), err
}

// set is a limit that 0 stands for none of.
func set(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func encodeTenant(o contract.Organization) tenant {
	l := o.Limits
	return tenant{ID: o.ID, Name: o.Name, MaxGPUs: int64(l.MaxGPUs), MaxGPUMemoryMB: l.MaxGPUMemoryMiB,
		MaxCPUCores: l.MaxCPUs, MaxMemoryMB: l.MaxMemoryMiB, MaxConcurrentJobs: l.MaxBookings, FairShareWeight: l.Weight,
		CreatedAt: o.CreatedAt}
}

func listTenants(c *Call) (int, any, error) {
	all, more, err := list[contract.Organization](c, "/v1/organizations", nil, 0, most, nil)
	out := make([]tenant, 0, len(all))
	for _, o := range all {
		out = append(out, encodeTenant(o))
	}
	return http.StatusOK, map[string]any{"tenants": out, "total": len(out), "more": more}, err
}

func readTenant(c *Call) (int, any, error) {
	var o contract.Organization
	err := c.get(c.path("/v1/organizations"), nil, &o)
	return http.StatusOK, encodeTenant(o), err
}

// readCluster counts what the key may see.
func readCluster(c *Call) (int, any, error) {
	nodes, _, err := list[contract.Node](c, "/v1/nodes", nil, 0, most, nil)
	if err != nil {
		return 0, nil, err
	}
	online := 0
	for _, n := range nodes {
		if n.State == "ready" || n.State == "draining" {
			online++
		}
	}
	gpus, err := countGPUs(c)
	if err != nil {
		return 0, nil, err
	}
	pending, running, err := countJobs(c)
	return http.StatusOK, map[string]int{"total_nodes": len(nodes), "online_nodes": online, "total_gpus": gpus.Total,
		"available_gpus": gpus.Free, "total_jobs": pending + running, "running_jobs": running,
		"pending_jobs": pending}, err
}

// countGPUs counts those that the key may see.
func countGPUs(c *Call) (contract.GPUCounts, error) {
	var all contract.GPUList
	err := c.get("/v1/gpus", nil, &all)
	return all.Totals, err
}

// countJobs counts those that are not over.
func countJobs(c *Call) (pending, running int, err error) {
	jobs, _, err := list[contract.Job](c, "/v1/jobs", nil, 0, most, nil)
	for _, j := range jobs {
		if dgpuStatus[j.State] == "running" {
			running++
		} else {
			pending++
		}
	}
	return pending, running, err
}
