package events

import "github.com/forewarm/forewarm/ledger"

// Keep is how many events are remembered.
const Keep = keep

// Recent is what the feed remembers.
type Recent = recentEvents

// Add is add.
func (r *recentEvents) Add(after int64, fresh []ledger.Event) { r.add(after, fresh) }

// Match is match.
func (r *recentEvents) Match(s ledger.Scope, f ledger.EventFilter, after int64) ([]ledger.Event, int64, bool) {
	return r.match(s, f, after)
}
