package runtimes

import (
	"cmp"
	"slices"
	"time"
)

// lengthOf is how many runs, or what part of one, are taken to have had a length.
type lengthOf struct {
	length time.Duration
	runs   float64
	cut    bool
}

// sample is lengths of runs, the shortest first; the last is unknown where some ran for longer than is known of any.
type sample []lengthOf

// sampleOf is Kaplan and Meier's estimate (1958), by Efron's way to it ("The two sample problem with censored data",
// Proc. 5th Berkeley Symp. on Math. Stat. and Prob. 4, 1967): what was cut at some length is taken to be, in equal
// parts, each of those that are known to have run for longer, and where there is none, to be longer than all.
func sampleOf(runs []Run) sample {
	all := make(sample, 0, len(runs)+1)
	for _, r := range runs {
		all = append(all, lengthOf{r.Length, 1, r.Cut})
	}
	slices.SortFunc(all, func(a, b lengthOf) int {
		if a.length == b.length && a.cut != b.cut { // who ended at that length had not been cut there
			return map[bool]int{true: 1, false: -1}[a.cut]
		}
		return cmp.Compare(a.length, b.length)
	})
	beyond := 0.0
	for i, x := range all {
		if !x.cut {
			continue
		}
		longer := all[i+1:]
		if len(longer) == 0 {
			beyond = x.runs
		}
		for k := range longer {
			longer[k].runs += x.runs / float64(len(longer))
		}
	}
	all = slices.DeleteFunc(all, func(x lengthOf) bool { return x.cut })
	if beyond > 0 {
		all = append(all, lengthOf{unknown, beyond, false})
	}
	return all
}

// at is the length of a rank, from 1.
func (s sample) at(rank int) time.Duration {
	const rounding = 1e-9 // of sums of parts
	so := 0.0
	for _, x := range s {
		if so += x.runs; so >= float64(rank)-rounding {
			return x.length
		}
	}
	return unknown
}
