package node

import (
	"maps"
	"slices"

	"github.com/forewarm/forewarm/core/capacity"
)

// The bounds of what operators say of a node.
const (
	MostLabels = 32
	MostTaints = 16
	mostWord   = 63
)

// IsWord reports whether a text can be the key of a label, or a taint: up to 63 letters, digits and
// -_./ of which the first is a letter or a digit.
func IsWord(text string) bool {
	return text != "" && isPlain(text) && text[0] != '-' && text[0] != '_' && text[0] != '.' && text[0] != '/'
}

// IsLabelValue reports whether a text can be the value of a label: as a word, or empty.
func IsLabelValue(text string) bool { return text == "" || IsWord(text) }

func isPlain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == '/':
		default:
			return false
		}
	}
	return len(text) <= mostWord
}

// LabelWords are the words by which jobs ask for a node of the pool: each label as key=value, and its key alone. The
// node has the pool's labels, too, but for those of whose keys it has its own.
func (n Node) LabelWords(p capacity.Pool) []string {
	labels := n.Labels
	if len(p.Labels) > 0 {
		labels = maps.Clone(p.Labels)
		maps.Copy(labels, n.Labels)
	}
	words := make([]string, 0, 2*len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key, key+"="+labels[key])
	}
	return words
}

// Label is the value of the node's label of a key, or of its pool's; empty: it has none.
func (n Node) Label(p capacity.Pool, key string) string {
	if value, own := n.Labels[key]; own {
		return value
	}
	return p.Labels[key]
}

// AllTaints are the node's taints and those of its pool.
func (n Node) AllTaints(p capacity.Pool) []string { return slices.Concat(p.Taints, n.Taints) }
