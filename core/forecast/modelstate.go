package forecast

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// modelVersion grows when the stored form of an OnlineModel changes its meaning.
const modelVersion = 4

// The versions before, which are read, too: the first knew no hazard and no day, and with the second the hazard did not
// take back what it begins with.
const (
	withoutHazard      = 2
	withoutHazardPrior = 3
)

// modelState is the stored form of an OnlineModel. Looks that wait for what comes true
// are not part of it: after a restart those of the last 40 minutes are lost.
type modelState struct {
	Version       int                    `json:"version"`
	Pace          int64                  `json:"pace"`
	Network       []byte                 `json:"network"`
	CrossFeatures []byte                 `json:"crosses"`
	Learned       float64                `json:"learned"` // examples, by the cross features
	HazardPrior   float64                `json:"hazard_prior"`
	Tenants       map[string]tenantState `json:"tenants"`
}

type tenantState struct {
	Number int        `json:"number"`
	Past   past       `json:"past"`
	Next   successors `json:"next,omitzero"`
}

// MarshalJSON writes what was learned.
func (f *OnlineModel) MarshalJSON() ([]byte, error) {
	s := modelState{Version: modelVersion, Pace: f.pace, Network: f.model.network.encode(),
		CrossFeatures: f.model.crossFeatures.encode(), Learned: f.model.crossFeatures.learned,
		HazardPrior: f.model.crossFeatures.hazardPrior, Tenants: map[string]tenantState{}}
	for name, t := range f.tenants {
		s.Tenants[name] = tenantState{t.number, t.past, t.next}
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote. A state of another version, or one
// that cannot have come from counting, is an error, and f stays as it was.
func (f *OnlineModel) UnmarshalJSON(data []byte) error {
	var s modelState
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return fmt.Errorf("decoding the forecaster's state: %w", err)
	}
	width := slot
	switch s.Version {
	case modelVersion:
	case withoutHazardPrior:
		s.HazardPrior = 1
	case withoutHazard:
		s.HazardPrior, width = 1, outputs
	default:
		return fmt.Errorf("the forecaster's state has version %d, want %d", s.Version, modelVersion)
	}
	if s.Pace < 1 || s.Pace > MaxPace {
		return fmt.Errorf("the forecaster's state has a clock of pace %d: %w", s.Pace, errState)
	}
	fresh := &OnlineModel{model: newModel(), pace: s.Pace, tenants: map[string]*Tenant{}}
	err := errors.Join(fresh.model.network.decode(s.Network), fresh.model.crossFeatures.decode(s.CrossFeatures, width))
	if err != nil {
		return fmt.Errorf("restoring the forecaster's model: %w", err)
	}
	if !(s.Learned >= 0) || !(s.HazardPrior >= 0 && s.HazardPrior <= 1) {
		return fmt.Errorf("the forecaster learned from %v examples, and %v is left of a beginning: %w", s.Learned,
			s.HazardPrior, errState)
	}
	fresh.model.crossFeatures.learned, fresh.model.crossFeatures.hazardPrior = s.Learned, s.HazardPrior
	numbers := map[int]bool{}
	for name, t := range s.Tenants {
		t.Past.Steps = t.Past.Steps.atMost(maxSteps)
		err := t.Past.checkSound(latest * s.Pace)
		if err != nil || !t.Next.isSound(t.Past.Last) || t.Number < 0 || numbers[t.Number] {
			return fmt.Errorf("restoring a tenant class: number %d: %w", t.Number, errors.Join(errState, err))
		}
		numbers[t.Number] = true
		fresh.tenants[name] = &Tenant{fleet: fresh, name: name, number: t.Number, past: t.Past, next: t.Next}
	}
	*f = *fresh
	for _, t := range f.tenants {
		t.fleet = f
	}
	return nil
}

var errState = errors.New("it cannot have come from counting")

// checkSound says what cannot be in p before the second latest, or returns nil.
func (p *past) checkSound(latest int64) error {
	switch {
	case p.Last < 0 || p.Last >= latest || p.Demand < 0 || p.Jobs < 0 || p.Largest < 0 || p.Largest > MaxJob:
		return errors.New("a count is out of range")
	case p.Submitted > p.Last || p.EndedAt > p.Last || p.First > p.Last || p.Gap1 < 0 || p.Gap2 < 0 || p.EndAge < 0:
		return errors.New("a time is out of range")
	case !p.Table.isSound(p.Last):
		return errors.New("a habit is out of range")
	case len(p.Steps) > maxSteps || p.JobGPUs < 0 || p.EndGPUs < 0 || p.Burst < 0 || p.Before < 0:
		return errors.New("a size is out of range")
	}
	for _, x := range p.Seen {
		for _, v := range x {
			if !(v >= 0 && v <= 1) {
				return errors.New("a share is not between 0 and 1")
			}
		}
	}
	for _, list := range [][]float32{p.Arrived[:], p.GPUs[:], p.Ended[:], p.Young[:], p.Lasting[:],
		{p.Size}} {
		for _, v := range list {
			if !(v >= 0) || math.IsInf(float64(v), 0) {
				return errors.New("a count is negative or not finite")
			}
		}
	}
	return nil
}

// encode writes the places of the table that were ever learned: each as its
// number and its weights and squares.
func (c *crossFeatures) encode() []byte {
	var out []byte
	for at := 0; at < len(c.weights); at += slot {
		w, s := c.weights[at:at+slot], c.squares[at:at+slot]
		if s[0] == 0 && s[hazardOutput] == 0 {
			continue
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(at/slot))
		for k := range w {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(w[k]))
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(s[k]))
		}
	}
	return out
}

// decode reads what encode wrote, with so many numbers to a place.
func (c *crossFeatures) decode(data []byte, width int) error {
	row := 4 + 8*width
	if len(data)%row != 0 {
		return errState
	}
	for ; len(data) > 0; data = data[row:] {
		place := int(binary.LittleEndian.Uint32(data))
		if place >= 1<<tableBits {
			return errState
		}
		for k := range width {
			w := math.Float32frombits(binary.LittleEndian.Uint32(data[4+8*k:]))
			s := math.Float32frombits(binary.LittleEndian.Uint32(data[8+8*k:]))
			if x := float64(w); math.IsNaN(x) || math.IsInf(x, 0) || !(s >= 0) || math.IsInf(float64(s), 0) {
				return errState
			}
			c.weights[place*slot+k], c.squares[place*slot+k] = w, s
		}
	}
	return nil
}
