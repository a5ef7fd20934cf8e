package jobscript

import (
	"errors"
	"strings"
)

// putConstraint reads features of nodes as labels: all of those between &. What Slurm has beside that cannot be had.
func (t *translation) putConstraint(value string) error { return t.putFeatures("constraint", value) }

// putPreferred reads features of nodes that come first.
func (t *translation) putPreferred(value string) error { return t.putFeatures("prefer", value) }

func (t *translation) putFeatures(flag, value string) error {
	if strings.ContainsAny(value, "|[]()*,") {
		return errors.New("features can be joined by & alone: each is a label of the node")
	}
	for word := range strings.SplitSeq(value, "&") {
		t.put(flag, word)
	}
	return nil
}

// putExcluded reads the nodes on which a job does not run: by their ids, as Forewarm has no names for them.
func (t *translation) putExcluded(value string) error {
	if strings.ContainsAny(value, "[]/") {
		return errors.New("nodes are named one by one, by their ids, with commas between them: forewarm nodes list")
	}
	for id := range strings.SplitSeq(value, ",") {
		t.put("exclude", id)
	}
	return nil
}
