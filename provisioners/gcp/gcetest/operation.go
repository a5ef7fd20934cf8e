package gcetest

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// operation is one zone operation. Its end is known when it begins.
type operation struct {
	id            uint64
	kind          string // operationType
	machine       *machine
	requestID     string
	begun, ended  time.Time
	code, message string // of its error; empty for none
	quota         string
	stillborn     bool // an insert that made nothing
}

func (c *Cloud) recordOperation(op *operation) *operation {
	op.id = c.nextID()
	c.operations = append(c.operations, op)
	return op
}

// dropOldOperations drops finished operations that are too old to be listed.
func (c *Cloud) dropOldOperations(now time.Time) {
	horizon := now.Add(-c.config.OperationMemory)
	c.operations = slices.DeleteFunc(c.operations, func(op *operation) bool { return op.ended.Before(horizon) })
}

func (op *operation) operationName() string { return "operation-" + strconv.FormatUint(op.id, 16) }

func (c Config) renderOperation(op *operation, now time.Time) object {
	shown := object{
		"kind": "compute#operation", "id": strconv.FormatUint(op.id, 10), "name": op.operationName(),
		"operationType": op.kind,
		"zone":          c.resourceLink("zones", op.machine.zone), "targetLink": c.instanceLink(op.machine),
		"targetId": strconv.FormatUint(op.machine.id, 10), "insertTime": formatTime(op.begun),
		"startTime": formatTime(op.begun),
		"status":    "RUNNING", "selfLink": c.resourceLink("zones", op.machine.zone, "operations", op.operationName()),
	}
	if op.requestID != "" {
		shown["clientOperationId"] = op.requestID
	}
	if !hasReached(op.ended, now) {
		return shown
	}
	shown["status"], shown["progress"], shown["endTime"] = "DONE", 100, formatTime(op.ended)
	if op.code != "" {
		failure := object{"code": op.code, "message": op.message}
		if op.quota != "" {
			failure["errorDetails"] = []object{{"quotaInfo": object{"metricName": op.quota,
				"limitName": op.quota + "-per-project-region", "limit": 8}}}
		}
		shown["error"] = object{"errors": []object{failure}}
	}
	return shown
}

// getOperation also answers wait: the API allows it to return at any time.
func (c *Cloud) getOperation(r *http.Request, now time.Time) (any, error) {
	for _, op := range c.operations {
		if op.operationName() == r.PathValue("operation") && op.machine.zone == r.PathValue("zone") {
			return c.config.renderOperation(op, now), nil
		}
	}
	return nil, newRefusal(http.StatusNotFound, "notFound",
		"The resource 'projects/%s/zones/%s/operations/%s' was not found",
		c.config.Project, r.PathValue("zone"), r.PathValue("operation"))
}

func (c *Cloud) listOperations(r *http.Request, now time.Time) (any, error) {
	var rows []object
	for _, op := range c.operations {
		if op.machine.zone == r.PathValue("zone") {
			rows = append(rows, c.config.renderOperation(op, now))
		}
	}
	rows, next, err := c.config.cutPage(r, rows)
	if err != nil {
		return nil, err
	}
	return object{"kind": "compute#operationList", "items": rows, "nextPageToken": next}, nil
}

func (c *Cloud) listZones(*http.Request, time.Time) (any, error) {
	var rows []object
	for _, zone := range c.config.Zones {
		rows = append(rows, object{"kind": "compute#zone", "name": zone, "status": "UP"})
	}
	return object{"kind": "compute#zoneList", "items": rows}, nil
}
