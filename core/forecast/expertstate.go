package forecast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// expertsVersion grows when the experts, or the stored form of what they cost, change.
const expertsVersion = 2

// olderExperts is the version before, whose experts were as many, and the first ones.
const (
	olderExperts = 1
	fewerExperts = byClock
)

// expertsState is the stored form of Experts.
type expertsState struct {
	Version int                    `json:"version"`
	At      int64                  `json:"at"`
	Boot    float64                `json:"boot"`
	Worth   float64                `json:"worth"`
	Cost    [experts]float64       `json:"cost"`
	Classes map[string]shadowState `json:"classes"`
}

// MarshalJSON writes what the experts have cost, and their fleets.
func (x *Experts) MarshalJSON() ([]byte, error) {
	s := expertsState{Version: expertsVersion, At: x.at, Boot: x.boot, Worth: x.worth, Cost: x.cost,
		Classes: map[string]shadowState{}}
	for name, c := range x.classes {
		s.Classes[name] = c.state
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote. A state of another version, or one that cannot have come from counting,
// is an error, and x stays as it was. Shadows that were made before no longer belong to x.
func (x *Experts) UnmarshalJSON(data []byte) error {
	var s expertsState
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return fmt.Errorf("decoding the state of the experts: %w", err)
	}
	switch s.Version {
	case expertsVersion:
	case olderExperts:
		s.addExperts()
	default:
		return fmt.Errorf("the state of the experts has version %d, want %d", s.Version, expertsVersion)
	}
	fresh := Experts{at: s.At, boot: s.Boot, worth: s.Worth, cost: s.Cost, classes: map[string]*Shadows{}}
	sound := s.At >= 0 && isAmount(s.Boot) && isAmount(s.Worth)
	for _, c := range s.Cost {
		sound = sound && isAmount(c)
	}
	for name, c := range s.Classes {
		sound = sound && c.isSound()
		fresh.classes[name] = &Shadows{experts: x, state: c}
	}
	if !sound {
		return fmt.Errorf("restoring the experts: %w", errState)
	}
	*x = fresh
	return nil
}

// addExperts lets experts that are new begin with what our own decision has cost.
func (s *expertsState) addExperts() {
	for i := fewerExperts; i < experts; i++ {
		s.Cost[i] = s.Cost[own]
		for name, c := range s.Classes {
			c.Fleets[i] = c.Fleets[own]
			s.Classes[name] = c
		}
	}
	for name, c := range s.Classes {
		for i := range c.Fleets {
			c.Fleets[i].Demand = unknown
		}
		s.Classes[name] = c
	}
}

// unknown is a demand that was not stored.
const unknown = -1

func isAmount(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// isSound reports whether the state can have come from counting.
func (st *shadowState) isSound() bool {
	sound := st.At >= 0 && st.Seen >= 0 && st.Since >= 0 && st.Leader >= 0 && st.Leader < experts
	sound = sound && len(st.Queue) <= queueLength
	for _, j := range st.Jobs {
		sound = sound && j.GPUs > 0 && j.Submitted >= 0
	}
	for i := range st.Fleets {
		f := &st.Fleets[i]
		sound = sound && isAmount(float64(f.Cost)) && f.Units >= 0 && f.Demand >= unknown
		for _, b := range f.Boots {
			sound = sound && b.Units >= 0 && isAmount(float64(b.Left))
		}
	}
	for _, m := range st.Means {
		sound = sound && isAmount(float64(m[0])) && isAmount(float64(m[1]))
	}
	for _, a := range st.Queue {
		sound = sound && a.Jobs >= 0 && a.GPUs >= 0
	}
	return sound
}
