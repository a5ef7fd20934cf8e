package events

import (
	"sort"
	"strings"

	"github.com/forewarm/forewarm/ledger"
)

// recentEvents are the newest events, without a gap: all of those after one number up to
// another, settled, of everybody, in their order. Its slices are never written to again.
type recentEvents struct {
	list        []ledger.Event
	after, upTo int64
}

// add adds what was read after a number.
func (r *recentEvents) add(after int64, fresh []ledger.Event) {
	if after != r.upTo {
		r.list, r.after = nil, after // something between was not read
	}
	whole := make([]ledger.Event, 0, len(r.list)+len(fresh))
	whole = append(append(whole, r.list...), fresh...)
	if more := len(whole) - keep; more > 0 {
		r.after = whole[more-1].Seq
		whole = whole[more:]
	}
	r.list, r.upTo = whole, fresh[len(fresh)-1].Seq
}

// match returns the events after a number that a scope may see and that match the
// filter, and up to which number that are all. False: not all of those after the number
// are remembered.
func (r recentEvents) match(s ledger.Scope, f ledger.EventFilter, after int64) ([]ledger.Event, int64, bool) {
	if r.upTo == 0 || after < r.after {
		return nil, after, false
	}
	from := sort.Search(len(r.list), func(i int) bool { return r.list[i].Seq > after })
	var found []ledger.Event
	for _, e := range r.list[from:] {
		if canSee(s, e) && (f.Subject == "" || e.Subject == f.Subject) && strings.HasPrefix(e.Type, f.Type) {
			found = append(found, e)
		}
	}
	return found, max(after, r.upTo), true
}

func canSee(s ledger.Scope, e ledger.Event) bool {
	return s.All || s.OrganizationID != "" && e.OrganizationID == s.OrganizationID
}
