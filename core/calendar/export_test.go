package calendar

import "fmt"

// Dump tells everything that answers depend on, so that two calendars can be
// compared down to the last step and bit. It builds the index.
func (s *Slots) Dump() string {
	if s.index == nil {
		s.buildIndex()
	}
	text := fmt.Sprint(s, s.lines, len(s.outside))
	return text + s.index.describe(rootPlace())
}

func (x *index) describe(p place) string {
	text := fmt.Sprint(p.height, p.hour, x.nodes[p.node].edges, x.setsOf(p.node))
	for slot := range x.slots {
		text += fmt.Sprint(" ", x.leastOfSiblings(p.node, slot)[p.node%radix])
	}
	if x.nodes[p.node].children == 0 {
		return text
	}
	for i := range int64(radix) {
		text += "(" + x.describe(x.childAt(p, p.hour+i<<(radixLog*(p.height-1)))) + ")"
	}
	return text
}

// Pages returns how many pages the tree holds and how many of them are in use.
func (p *Profile) Pages() (held, used int) {
	held = len(p.tree.leaves.all) + len(p.tree.inners.all)
	return held, held - len(p.tree.leaves.free) - len(p.tree.inners.free)
}
