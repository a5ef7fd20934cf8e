package compat

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// below is where GPUScheduler has its routes.
const below = "/api/gpuscheduler/v1"

// allocateRoutes are those of GPUScheduler for its GPUs, each of which is an allocation of one. Its
// documents have other paths than its program had: both lead here.
func allocateRoutes() []Route {
	var out []Route
	for _, at := range []string{below, below + "/gpus"} {
		out = append(out, Route{http.MethodPost, at + "/allocate", auth.Member, allocateGPU},
			Route{http.MethodGet, at + "/gpus", auth.Viewer, listLeasedGPUs},
			Route{http.MethodGet, at + "/gpu/:id", auth.Viewer, readLeasedGPU},
			Route{http.MethodDelete, at + "/gpu/:id", auth.Member, releaseGPU})
	}
	return out
}

type gpuRequest struct {
	GPUModel     string `json:"gpu_model"`
	UserRegion   string `json:"user_region"`
	JobType      string `json:"job_type"`
	Requirements struct {
		MinMemoryGB float64 `json:"min_memory_gb"`
	} `json:"requirements"`
}

// leaseOfGPU is how long a GPU was lent, in seconds.
const leaseOfGPU = 3600

func allocateGPU(c *Call) (int, any, error) {
	var in gpuRequest
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := checkNumbers(bounded{"requirements.min_memory_gb", in.Requirements.MinMemoryGB, 0, 16384}); err != nil {
		return 0, nil, err
	}
	name := ""
	if in.JobType != "" {
		name = "job type " + in.JobType
	}
	var made contract.Allocation
	err := c.post("/v1/allocations", contract.AllocationCreate{Model: in.GPUModel, GPUs: 1, LeaseSeconds: leaseOfGPU,
		Name: name, Needs: anyGPU(contract.Needs{Region: in.UserRegion,
			MinGPUMemoryMiB: int(in.Requirements.MinMemoryGB * 1024)}, in.GPUModel)}, &made)
	err = renamed(err, "model", "gpu_model", "region", "user_region", "min_gpu_memory_mib", "requirements.min_memory_gb")
	return http.StatusAccepted, map[string]string{"task_id": made.ID, "message": "GPU allocation request accepted"},
		asTooMany(err)
}

// asTooMany is a quota's refusal with the status that it had.
func asTooMany(err error) error {
	p, ok := errors.AsType[*problem.Problem](err)
	if ok && p.Code == contract.CodeQuotaExceeded {
		p.Status = http.StatusTooManyRequests
		return p
	}
	return err
}

type leasedGPU struct {
	ID             string    `json:"id"`
	OrganizationID string    `json:"organization_id"`
	UserID         string    `json:"user_id"`
	InstanceID     string    `json:"instance_id,omitempty"`
	PublicIP       string    `json:"instance_public_ip,omitempty"`
	Status         string    `json:"status"`
	HealthState    string    `json:"health_state"`
	LeaseExpiresAt time.Time `json:"lease_expires_at,omitzero"`
	LastSeen       time.Time `json:"last_seen,omitzero"`
}

// leaseStatus is what an allocation's state was called.
var leaseStatus = map[string]string{"pending": "PROVISIONING", "active": "AVAILABLE", "releasing": "DEPROVISIONING",
	"released": "DEPROVISIONED", "expired": "DEPROVISIONED", "cancelled": "DEPROVISIONED", "failed": "ERROR"}

func listLeasedGPUs(c *Call) (int, any, error) {
	status, err := c.oneOf("status", "PROVISIONING", "AVAILABLE", "BUSY", "DEPROVISIONING", "DEPROVISIONED", "ERROR")
	if err != nil {
		return 0, nil, err
	}
	var states []string
	for state, old := range leaseStatus {
		if status == "" || old == status {
			states = append(states, state)
		}
	}
	out := []leasedGPU{}
	if len(states) == 0 { // nothing was ever busy
		return http.StatusOK, out, nil
	}
	all, _, err := list[contract.Allocation](c, "/v1/allocations", url.Values{"state": {strings.Join(states, ",")}}, 0,
		most, nil)
	if err != nil {
		return 0, nil, err
	}
	gpus, err := healthOfGPUs(c)
	for _, a := range all {
		out = append(out, encodeLease(a, gpus))
	}
	return http.StatusOK, out, err
}

func readLeasedGPU(c *Call) (int, any, error) {
	var a contract.Allocation
	if err := c.get(c.path("/v1/allocations"), nil, &a); err != nil {
		return 0, nil, err
	}
	gpus, err := healthOfGPUs(c)
	return http.StatusOK, encodeLease(a, gpus), err
}

func releaseGPU(c *Call) (int, any, error) {
	err := c.ask(inward.Request{Method: http.MethodDelete, Path: c.path("/v1/allocations"), Once: c.Once}, nil)
	return http.StatusAccepted, map[string]string{"message": "GPU deallocation request accepted"}, err
}

// healthOfGPUs are the held devices that the key may see, by allocation.
func healthOfGPUs(c *Call) (map[string]contract.GPU, error) {
	gpus, _, err := list[contract.GPU](c, "/v1/gpus", url.Values{"state": {"held"}}, 0, most, nil)
	out := map[string]contract.GPU{}
	for _, g := range gpus {
		out[g.AllocationID] = g
	}
	return out, err
}

func encodeLease(a contract.Allocation, gpus map[string]contract.GPU) leasedGPU {
	out := leasedGPU{ID: a.ID, OrganizationID: a.OrganizationID, UserID: a.HeldBy, Status: leaseStatus[a.State],
		HealthState: "UNKNOWN", LeaseExpiresAt: a.LeaseUntil}
	if a.Access != nil && len(a.Access.Nodes) > 0 {
		out.InstanceID, out.PublicIP = a.Access.Nodes[0].NodeID, a.Access.Nodes[0].Address
	}
	if g, ok := gpus[a.ID]; ok {
		out.HealthState = strings.ToUpper(g.Health)
		if g.Seen != nil {
			out.LastSeen = g.Seen.SeenAt
		}
	}
	return out
}
