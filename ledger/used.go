package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// UsedUntil returns until when the last of an allocation's GPUs was used, by id, of those of some allocations that are
// over: when it ended, less the idleness of all of its GPUs that was seen at its end. Who used none has when it was
// activated. What a cluster's scheduler placed is its cluster's affair, and in none.
func UsedUntil(r Reader, all []allocation.Allocation) (map[string]time.Time, error) {
	over := slices.DeleteFunc(slices.Clone(all), func(a allocation.Allocation) bool {
		return a.ActiveAt.IsZero() || a.EndedAt.IsZero() || a.Observed() || len(a.Devices) == 0
	})
	if len(over) == 0 {
		return nil, nil
	}
	did, err := readStretches(r, over)
	if err != nil {
		return nil, err
	}
	until := make(map[string]time.Time, len(over))
	for _, a := range over {
		held := calendar.Interval{Start: a.ActiveAt, End: a.EndedAt}
		last := a.ActiveAt
		for _, d := range a.Devices {
			gpu := allocation.Held{NodeID: d.NodeID, UUID: capacity.GPUOf(d.UUID)}
			if used := activity.UsedUntil(did[gpu], held); used.After(last) {
				last = used
			}
		}
		until[a.ID] = last
	}
	return until, nil
}

// readStretches returns what the GPUs of the nodes of some allocations did while these had them.
func readStretches(r Reader, all []allocation.Allocation) (map[allocation.Held][]activity.Stretch, error) {
	during := map[string]calendar.Interval{} // by node, while any of them had it
	for _, a := range all {
		for _, d := range a.Devices {
			held, known := during[d.NodeID]
			if !known || a.ActiveAt.Before(held.Start) {
				held.Start = a.ActiveAt
			}
			if !known || a.EndedAt.After(held.End) {
				held.End = a.EndedAt
			}
			during[d.NodeID] = held
		}
	}
	did, err := r.GPUStretches(during)
	if err != nil {
		return nil, fmt.Errorf("reading what GPUs did: %w", err)
	}
	byGPU := map[allocation.Held][]activity.Stretch{}
	for nodeID, stretches := range did {
		for _, s := range stretches {
			gpu := allocation.Held{NodeID: nodeID, UUID: s.GPU}
			byGPU[gpu] = append(byGPU[gpu], s)
		}
	}
	return byGPU, nil
}
