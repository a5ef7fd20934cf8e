package compat

import (
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
)

// operationRoutes say what became of a request for a GPU, whose task_id is the allocation's id.
func operationRoutes() []Route {
	return []Route{{http.MethodGet, below + "/operations/:id", auth.Viewer, readOperation},
		{http.MethodGet, "/v1/operations/:id", auth.Viewer, readOperation}}
}

type oldOperation struct {
	ID         string    `json:"id"`
	TaskID     string    `json:"task_id"`
	Status     string    `json:"status"`
	Done       bool      `json:"done"`
	Message    string    `json:"message"`
	Resource   string    `json:"resource"`
	CreatedAt  time.Time `json:"created_at"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

func readOperation(c *Call) (int, any, error) {
	var a contract.Allocation
	err := c.get(c.path("/v1/allocations"), nil, &a)
	return http.StatusOK, encodeOperation(a), err
}

// encodeOperation is of the request alone: it has succeeded once there were GPUs, whatever became of those.
func encodeOperation(a contract.Allocation) oldOperation {
	out := oldOperation{ID: a.ID, TaskID: a.ID, Message: a.Reason, Resource: "/v1/allocations/" + a.ID,
		CreatedAt: a.RequestedAt, Done: true, FinishedAt: a.EndedAt}
	switch {
	case !a.ActiveAt.IsZero():
		out.Status, out.FinishedAt = "succeeded", a.ActiveAt
	case a.EndedAt.IsZero():
		out.Status, out.Done = "running", false
	case a.State == "failed":
		out.Status = "failed"
	default:
		out.Status = "cancelled"
	}
	return out
}
