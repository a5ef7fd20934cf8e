package ledger

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
)

// What a job may say of its nodes.
const (
	mostTerms    = 16
	mostExcluded = 64
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
		{"constraints", w.Constraints, mostTerms, isLabelTerm, "write a label as in disk=nvme, or its key alone"},
		{"prefers", w.Prefers, mostTerms, isLabelTerm, "write a label as in disk=nvme, or its key alone"},
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

// isLabelTerm reports whether a text asks for a label: key=value, or its key alone.
func isLabelTerm(text string) bool {
	key, value, _ := strings.Cut(text, "=")
	return node.IsWord(key) && node.IsLabelValue(value)
}
