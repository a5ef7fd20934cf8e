package ledger

import (
	"fmt"
	"time"
)

// MaxWindows is the most windows one desired plan may hold.
const MaxWindows = 1000

// Demand is everything that an agent wants kept warm in a pool. It is a
// statement of the whole, not a list of changes: sending it twice changes
// nothing, and what it leaves out is given up.
type Demand struct {
	Pool    string // id or name
	Windows []DemandWindow
}

// DemandWindow is a wish for GPUs to be warm in [Start, End), beyond what is
// held already.
type DemandWindow struct {
	Start, End  time.Time
	GPUs        int
	Probability float64
	ReasonCode  string
}

// WindowOutcome says what became of one window.
type WindowOutcome struct {
	Window       DemandWindow
	Reservations []string
	Kept, Placed int           // reservations
	Refused      *RefusedError // why the rest got no place
}

// Check returns *InvalidError for demand that nobody could serve.
func (p Demand) Check() error {
	if len(p.Windows) > MaxWindows {
		return &InvalidError{Field: "windows", Rule: fmt.Sprintf("may hold at most %d", MaxWindows)}
	}
	for i, w := range p.Windows {
		at := func(f string) string { return fmt.Sprintf("windows[%d].%s", i, f) }
		switch {
		case !w.Start.Before(w.End):
			return &InvalidError{Field: at("end"), Rule: "must be after start"}
		case w.GPUs < 1 || w.GPUs > MaxGPUs:
			return &InvalidError{Field: at("gpus"), Rule: fmt.Sprintf("must be between 1 and %d", MaxGPUs)}
		case w.Probability < 0 || w.Probability > 1 || w.Probability != w.Probability:
			return &InvalidError{Field: at("probability"), Rule: "must be between 0 and 1"}
		}
	}
	return nil
}
