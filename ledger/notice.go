package ledger

import (
	"time"
)

// Notice is what a provider announced of a machine.
type Notice struct {
	Kind    string    // a code: interruption, expiring, degraded
	At      time.Time // when it comes true; zero where the provider does not say
	Message string    // the provider's own words
}

// Text tells of the notice in a sentence.
func (n Notice) Text() string {
	when := "at a time that its provider does not say"
	if !n.At.IsZero() {
		when = "at " + FormatTime(n.At)
	}
	switch n.Kind {
	case "interruption":
		return "its provider takes it back " + when
	case "expiring":
		return "the supply that it belongs to ends " + when
	default:
		return "its provider says that it is failing"
	}
}
