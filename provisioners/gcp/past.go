//go:build clouds

package gcp

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"
)

// past is what the zone's operations tell of an instance's name.
type past struct {
	inserts []*compute.Operation // oldest first
	others  []*compute.Operation
}

// addOperation sorts an operation. The filter matches names that begin alike too.
func (p *past) addOperation(op *compute.Operation, name string) {
	if !strings.HasSuffix(op.TargetLink, "/instances/"+name) {
		return
	}
	if op.OperationType == "insert" {
		p.inserts = append(p.inserts, op)
		return
	}
	p.others = append(p.others, op)
}

// stops are the operations, beside a delete, after which an instance is billed no
// longer unless it is started again.
var stops = []string{
	"stop", "compute.instances.stop", "compute.instances.preempted", "compute.instances.guestTerminate",
	"compute.instances.hostError",
	"compute.instances.terminateOnHostMaintenance", "compute.instances.scheduledVmTermination",
}

// endOf returns when the instance with the number ended, and whether it is
// certain that it did or does: at its first stop that was not undone, else at
// the last delete, since a delete that had no effect is asked for again.
func (p past) endOf(number uint64) (at time.Time, certain bool) {
	began := func(op *compute.Operation) bool { return op.OperationType == "start" }
	deletes := func(op *compute.Operation) bool { return op.OperationType == "delete" }
	stopped := func(op *compute.Operation) bool { return slices.Contains(stops, op.OperationType) }
	started := slices.MaxFunc(append(p.endTimes(number, began), time.Time{}), time.Time.Compare)
	var ends []time.Time
	for _, end := range p.endTimes(number, stopped) {
		if end.IsZero() || end.After(started) {
			certain = true
			ends = append(ends, end)
		}
	}
	if deleted := p.endTimes(number, deletes); len(deleted) > 0 {
		certain = true
		ends = append(ends, slices.MaxFunc(deleted, time.Time.Compare))
	}
	ends = slices.DeleteFunc(ends, time.Time.IsZero) // not done yet
	if len(ends) == 0 {
		return time.Time{}, certain
	}
	return slices.MinFunc(ends, time.Time.Compare), certain
}

// endTimes are the times at which the operations that are meant, and had no error,
// were done; zero for those that are not yet.
func (p past) endTimes(number uint64, meant func(*compute.Operation) bool) []time.Time {
	var ends []time.Time
	for _, op := range p.others {
		if op.TargetId == number && op.Error == nil && meant(op) {
			ends = append(ends, parseTime(op.EndTime))
		}
	}
	return ends
}

// insertOf returns the operation that made the instance with the number, nil when
// it is not known any more.
func (p past) insertOf(number uint64) *compute.Operation {
	i := slices.IndexFunc(p.inserts, func(op *compute.Operation) bool { return op.TargetId == number })
	if i < 0 {
		return nil
	}
	return p.inserts[i]
}
