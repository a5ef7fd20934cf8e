package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// watchState is the stored form of a Watch.
type watchState struct {
	Version int           `json:"version"`
	Boot    time.Duration `json:"boot"`
	Level   int           `json:"level"`
	Dips    []dip         `json:"dips,omitempty"`
	Planned int           `json:"planned"`
	Demand  int           `json:"demand"`
	Now     time.Time     `json:"now"`
	Holds   []*hold       `json:"holds,omitempty"`
}

// maxHolds bounds what a stored Watch may hold.
const maxHolds = maxOpen

// MarshalJSON writes the whole state, open holds included.
func (w *Watch) MarshalJSON() ([]byte, error) {
	return json.Marshal(watchState{stateVersion, w.boot, w.supply.level, w.supply.dips, w.planned, w.demand, w.now,
		w.holds})
}

// UnmarshalJSON reads what MarshalJSON wrote. A state of another version, or one
// that cannot have come from watching, is an error and w stays as it was.
func (w *Watch) UnmarshalJSON(data []byte) error {
	var s watchState
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return fmt.Errorf("decoding the state of a watch: %w", err)
	}
	if s.Version != stateVersion || s.Boot <= 0 || s.Boot > maxSpan || s.Level < 0 || s.Demand < 0 ||
		len(s.Holds) > maxHolds {
		return fmt.Errorf("checking the state of a watch: a number is out of range")
	}
	for _, h := range s.Holds {
		if h == nil || h.Held < 0 || h.Arrived < 0 || !areFinite(h.Saved[:]...) || !areFinite(h.Idle[:]...) ||
			!areFinite(h.Spared, h.Spent) {
			return fmt.Errorf("checking the state of a watch: a hold is out of range")
		}
	}
	*w = Watch{boot: s.Boot, supply: supply{boot: s.Boot, level: s.Level, dips: s.Dips}, planned: s.Planned,
		demand: s.Demand, now: s.Now, holds: s.Holds}
	return nil
}
