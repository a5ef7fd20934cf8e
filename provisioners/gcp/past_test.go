//go:build clouds

package gcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/api/compute/v1"
)

func TestWhenAMachineEnded(t *testing.T) {
	t.Parallel()
	op := func(kind, end string) *compute.Operation {
		done := &compute.Operation{OperationType: kind, TargetId: 7, Status: "RUNNING"}
		if end != "" {
			done.Status, done.EndTime = "DONE", "2026-03-02T"+end+":00.000-08:00"
		}
		return done
	}
	other, failed := op("delete", "09:00"), op("delete", "09:00")
	other.TargetId, failed.Error = 8, &compute.OperationError{}
	for name, test := range map[string]struct {
		operations []*compute.Operation
		hour       int // in UTC; 0 is not known
		certain    bool
	}{
		"nothing":                  {nil, 0, false},
		"somebody else, a failure": {[]*compute.Operation{other, failed, op("setMetadata", "09:00")}, 0, false},
		"deleted":                  {[]*compute.Operation{op("delete", "10:00")}, 18, true},
		"being deleted":            {[]*compute.Operation{op("delete", "")}, 0, true},
		"a delete without effect":  {[]*compute.Operation{op("delete", "10:00"), op("delete", "11:00")}, 19, true},
		"preempted, then deleted": {[]*compute.Operation{op("compute.instances.preempted", "09:00"),
			op("delete", "10:00")}, 17, true},
		"being stopped": {[]*compute.Operation{op("stop", "")}, 0, true},
		"started again": {[]*compute.Operation{op("stop", "09:00"), op("start", "10:00")}, 0, false},
		"and stopped again": {[]*compute.Operation{op("stop", "09:00"), op("start", "10:00"),
			op("stop", "11:00")}, 19, true},
	} {
		at, certain := past{others: test.operations}.endOf(7)
		require.Equal(t, test.certain, certain, name)
		want := time.Time{}
		if test.hour != 0 {
			want = time.Date(2026, 3, 2, test.hour, 0, 0, 0, time.UTC)
		}
		require.Equal(t, want, at, name)
	}
}
