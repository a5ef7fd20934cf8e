package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/placement"
)

// What a job may say of its nodes.
const (
	mostTerms    = 16
	mostExcluded = 64
	mostCompany  = 16
)

// checkWhere refuses what no node can meet, whatever operators say of it.
func checkWhere(w job.Where) error {
	for _, list := range []struct {
		field string
		words []string
		most  int
		ok    func(string) bool
		fix   string
	}{
		{"constraints", w.Constraints, mostTerms, isLabelTerm, termFix},
		{"prefers", w.Prefers, mostTerms, isLabelTerm, termFix},
		{"near", w.Near, mostCompany, node.IsWord, "write the ids of jobs or arrays: forewarm jobs list"},
		{"apart_from", w.Apart, mostCompany, isCompany, "write ids of jobs or arrays, or names of jobs"},
		{"tolerations", w.Tolerates, mostTerms, node.IsWord, "write a taint as in licensed"},
		{"excluded_nodes", w.Excludes, mostExcluded, node.IsWord, "write the ids of nodes: forewarm nodes list"},
	} {
		if len(list.words) > list.most {
			return &InvalidError{Field: list.field, Rule: fmt.Sprintf("must be at most %d", list.most)}
		}
		for i, word := range list.words {
			if !list.ok(word) {
				return &InvalidError{Field: fmt.Sprintf("%s[%d]", list.field, i),
					Rule: fmt.Sprintf("%q: %s", ClipText(word, 130), wordRule), Fix: list.fix}
			}
		}
	}
	return nil
}

const termFix = "write disk=nvme, disk, !disk, disk!=nvme, 'disk in (nvme, ssd)' or 'disk notin (hdd)'"

// mostTermValues bounds the values of one term.
const mostTermValues = 16

// isLabelTerm reports whether a text is a condition on labels.
func isLabelTerm(text string) bool {
	t, ok := placement.ParseTerm(text)
	return ok && node.IsWord(t.Key) && len(t.Values) <= mostTermValues &&
		!slices.ContainsFunc(t.Values, func(v string) bool { return !node.IsLabelValue(v) })
}

// isCompany reports whether a text can be the id of a job or an array, or the name of a job.
func isCompany(text string) bool {
	return text != "" && len(text) <= 64 && !strings.ContainsAny(text, "\n\r\x00")
}
