package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
)

// PoolNeeds says which pools may serve a request: one that it names, or any that
// has the model and meets the needs. What is empty does not bind; where all is empty, it is the only pool there is, if
// there are not several.
type PoolNeeds struct {
	Pool  string // id or name
	model string
	needs capacity.Needs
	any   bool // of several pools any will do, if nothing is said of them
}

// OfAny are the same needs of somebody whom any pool suits.
func (w PoolNeeds) OfAny() PoolNeeds {
	w.any = true
	return w
}

// FilterPools keeps the pools that fit. If none does, the error names what the last
// ones lacked that were left.
func (w PoolNeeds) FilterPools(all []Pool) ([]Pool, error) {
	if len(all) == 0 {
		return nil, &InvalidError{Field: "pool", Rule: "cannot be chosen: there is none yet",
			Fix: "have an operator make one"}
	}
	if w == (PoolNeeds{}) && len(all) > 1 {
		return nil, &InvalidError{Field: "pool", Rule: "must be given, or a model, a region or a memory size: there are " +
			"several pools", Fix: "name one: " + listNames(all)}
	}
	for _, only := range []PoolNeeds{{model: w.model}, {needs: capacity.Needs{Region: w.needs.Region}},
		{needs: capacity.Needs{MemoryMiB: w.needs.MemoryMiB}},
		{needs: capacity.Needs{NodeMemoryMiB: w.needs.NodeMemoryMiB}}} {
		fit := slices.DeleteFunc(slices.Clone(all), func(p Pool) bool { return only.UnmetBy(p) != nil })
		if len(fit) == 0 {
			return nil, only.inNoPool(all)
		}
		all = fit
	}
	return all, nil
}

// mostNamed bounds how many pools an error names.
const mostNamed = 5

func listNames(pools []Pool) string {
	var names []string
	for _, p := range pools {
		if len(names) == mostNamed {
			names = append(names, "…")
			break
		}
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// UnmetBy says what the pool lacks, as *InvalidError; nil: nothing.
func (w PoolNeeds) UnmetBy(p Pool) error {
	if w.model != "" && !strings.EqualFold(w.model, p.Model) {
		return &InvalidError{Field: "model", Rule: fmt.Sprintf("%q is not that of pool %s, which has %s",
			ClipText(w.model, 80), p.Name, p.Model),
			Fix: "leave out pool or model"}
	}
	switch w.needs.Unmet(p.Pool) {
	case capacity.NeedRegion:
		return &InvalidError{Field: "region", Rule: fmt.Sprintf("%q is not that of pool %s, which is in %q",
			ClipText(w.needs.Region, 80), p.Name, p.Region)}
	case capacity.NeedMemory:
		return &InvalidError{Field: "min_gpu_memory_mib",
			Rule: fmt.Sprintf("must be at most %s, which a GPU of pool %s has", formatGiB(p.MemoryMiB), p.Name)}
	case capacity.NeedNodeMemory:
		if p.NodeMemoryMiB == 0 {
			return &InvalidError{Field: "min_node_memory_mib",
				Rule: fmt.Sprintf("cannot be met by pool %s, which does not say how much its nodes have", p.Name)}
		}
		return &InvalidError{Field: "min_node_memory_mib",
			Rule: fmt.Sprintf("must be at most %s, which a node of pool %s has", formatGiB(p.NodeMemoryMiB), p.Name)}
	default:
		return nil
	}
}

func formatGiB(mib int) string { return strconv.FormatFloat(float64(mib)/1024, 'f', -1, 64) + " GiB" }

// inNoPool says that none of the pools that would fit otherwise has the one thing wanted.
func (w PoolNeeds) inNoPool(others []Pool) error {
	most, mostOfNode := 0, 0
	for _, p := range others {
		most, mostOfNode = max(most, p.MemoryMiB), max(mostOfNode, p.NodeMemoryMiB)
	}
	e := &InvalidError{Fix: "ask for what one of the pools has"}
	switch {
	case w.model != "":
		e.Field, e.Rule = "model", fmt.Sprintf("%q is in no pool", ClipText(w.model, 80))
	case w.needs.Region != "":
		e.Field, e.Rule = "region", fmt.Sprintf("%q is that of no pool that would fit", ClipText(w.needs.Region, 80))
	case w.needs.MemoryMiB > 0:
		e.Field, e.Rule = "min_gpu_memory_mib",
			fmt.Sprintf("must be at most %s, the most that a GPU of a pool that would fit has", formatGiB(most))
	case mostOfNode == 0:
		e.Field, e.Rule = "min_node_memory_mib", "cannot be met: no pool that would fit says how much its nodes have"
	default:
		e.Field, e.Rule = "min_node_memory_mib",
			fmt.Sprintf("must be at most %s, the most that a node of a pool that would fit is known to have",
				formatGiB(mostOfNode))
	}
	return e
}

// PassedPools are those that could not serve a request, in the order in which
// they were tried, before one did or none was left.
type PassedPools []passedPool

type passedPool struct {
	name string
	err  error
}

// PassOver puts down that a pool cannot serve, and reports whether the next one may.
func (r *PassedPools) PassOver(pool string, err error) bool {
	var refused *RefusedError
	if !errors.As(err, &refused) && !errors.Is(err, ErrRecovering) {
		return false
	}
	*r = append(*r, passedPool{name: pool, err: err})
	return true
}

// RefusalOfAll is what is said when no pool was left: the refusal by the first, which
// names the others.
func (r PassedPools) RefusalOfAll() error {
	for i, first := range r {
		var refused *RefusedError
		if !errors.As(first.err, &refused) {
			continue
		}
		for j, other := range r {
			if j != i {
				refused.Others = append(refused.Others, PoolRefusal{Pool: other.name, Message: other.err.Error()})
			}
		}
		return refused
	}
	if len(r) == 0 {
		return nil
	}
	return r[0].err
}

// DescribePassed says which cheaper or warmer pools were passed over, for the event of what
// another one served.
func (r PassedPools) DescribePassed() string {
	var b strings.Builder
	for _, passed := range r {
		fmt.Fprintf(&b, "; not in %s: %s", passed.name, passed.err)
	}
	return ClipText(b.String(), 400)
}
