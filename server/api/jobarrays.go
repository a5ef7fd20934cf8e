package api

import (
	"slices"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

func checkArray(a *contract.JobArray) error {
	switch {
	case a == nil:
		return nil
	case len(a.Indices) > 0 && (a.First != 0 || a.Last != 0 || a.Step > 1):
		return problem.Invalid("array.indices", "must not be given beside first, last or step", "leave those out")
	case a.Last < a.First:
		return problem.Invalid("array.last", "must not be below first", "")
	}
	return nil
}

// indicesOf are those of an array, in ascending order, or one more than an array may have.
func indicesOf(a contract.JobArray) []int {
	if len(a.Indices) > 0 {
		return slices.Sorted(slices.Values(a.Indices))
	}
	var all []int
	for i := a.First; i <= a.Last && len(all) <= ledger.MostArray; i += max(a.Step, 1) {
		all = append(all, i)
	}
	return all
}
