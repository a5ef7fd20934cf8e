package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/plan"
)

// IdleAllocations returns those of some allocations whose GPUs are idle, by id. It is for as long as
// the daemons of all their nodes tell: of GPUs that nobody looks at now it is not
// known. What a cluster's scheduler placed is its cluster's affair, and in none.
func IdleAllocations(r Reader, all []allocation.Allocation) (map[string]plan.Idleness, error) {
	var held []allocation.Allocation
	nodes := map[string]bool{}
	for _, a := range all {
		if a.State() != allocation.Active || a.Observed() || len(a.Devices) == 0 {
			continue
		}
		held = append(held, a)
		for _, d := range a.Devices {
			nodes[d.NodeID] = true
		}
	}
	if len(held) == 0 {
		return nil, nil
	}
	said, err := r.PresencesOf(slices.Sorted(maps.Keys(nodes)))
	if err != nil {
		return nil, fmt.Errorf("reading what GPUs do: %w", err)
	}
	idle := map[string]plan.Idleness{}
	for _, a := range held {
		if i, is := idleness(a, said, r.Now()); is {
			idle[a.ID] = i
		}
	}
	return idle, nil
}

// tellIdleAfter is how long GPUs do nothing until anybody is told, unless the pool warns sooner.
const tellIdleAfter = 10 * time.Minute

// IsTold reports whether people are told of the idleness of an allocation.
func IsTold(i plan.Idleness, a allocation.Allocation) bool {
	return i.Length() >= tellIdleAfter || i.Warned(a.IdleWarnedAt)
}

// idleness is since when, and until when, all GPUs of an active allocation were seen to be
// idle, by what the daemons of its nodes said last.
func idleness(a allocation.Allocation, said map[string]Presence, now time.Time) (i plan.Idleness, idle bool) {
	gpus := map[string][]string{}
	for _, d := range a.Devices {
		gpus[d.NodeID] = append(gpus[d.NodeID], capacity.GPUOf(d.UUID))
	}
	i = plan.Idleness{Since: a.ActiveAt, Seen: now}
	for nodeID, uuids := range gpus {
		p := said[nodeID]
		since, idle := activity.IdleSince(p.Activity, uuids)
		if !idle || now.Sub(p.SeenAt) > activity.MaxGap {
			return plan.Idleness{}, false
		}
		if since.After(i.Since) {
			i.Since = since
		}
		if p.SeenAt.Before(i.Seen) {
			i.Seen = p.SeenAt
		}
	}
	if i.Seen.Before(i.Since) {
		i.Seen = i.Since // nobody has looked since it was activated
	}
	return i, true
}
