// Package labels reads and shows the labels and taints of nodes and of pools, as commands have them.
package labels

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/cli/exit"
)

// Change returns labels with those that are set, as KEY=VALUE, and without those that are removed, as KEY-. help is the
// command that tells how to write them.
func Change(had map[string]string, words []string, help string) (map[string]string, error) {
	labels := map[string]string{}
	maps.Copy(labels, had)
	for _, word := range words {
		key, value, sets := strings.Cut(word, "=")
		removed, removes := strings.CutSuffix(word, "-")
		switch {
		case sets:
			labels[key] = value
		case removes:
			delete(labels, removed)
		default:
			return nil, exit.UsageErrorf(help, "%q is no label: write KEY=VALUE to set one, and KEY- to remove it", word)
		}
	}
	return labels, nil
}

// ChangeTaints returns taints with those that are set, and without those that are removed, as WORD-.
func ChangeTaints(had, words []string) []string {
	taints := append([]string{}, had...)
	for _, word := range words {
		removed, removes := strings.CutSuffix(word, "-")
		taints = slices.DeleteFunc(taints, func(t string) bool { return t == word || removes && t == removed })
		if !removes {
			taints = append(taints, word)
		}
	}
	slices.Sort(taints)
	return taints
}

// Text shows labels.
func Text(labels map[string]string) string {
	all := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, fmt.Sprintf("%s=%s", key, labels[key]))
	}
	return strings.Join(all, " ")
}
