package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// stateVersion grows when the stored form of TrackRecords changes its meaning.
const stateVersion = 1

// state is the stored form of TrackRecords.
type state struct {
	Version int                 `json:"version"`
	Config  Config              `json:"config"`
	Kinds   map[string]*kind    `json:"kinds"`
	Sources map[string]*account `json:"sources"`
	Open    map[string]opened   `json:"open"`
}

// MarshalJSON writes the whole state, open records included. Read back, it gives
// the same decisions to the last bit.
func (b *TrackRecords) MarshalJSON() ([]byte, error) {
	return json.Marshal(state{stateVersion, b.cfg, b.kinds, b.sources, b.open})
}

// UnmarshalJSON reads what MarshalJSON wrote. A state of another version, or one
// that cannot have come from counting, is an error and b stays as it was.
func (b *TrackRecords) UnmarshalJSON(data []byte) error {
	s := state{Kinds: map[string]*kind{}, Sources: map[string]*account{}, Open: map[string]opened{}}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return fmt.Errorf("decoding an evidence state: %w", err)
	}
	if err := s.validate(); err != nil {
		return fmt.Errorf("checking an evidence state: %w", err)
	}
	*b = TrackRecords{cfg: s.Config, kinds: s.Kinds, sources: s.Sources, open: s.Open}
	return nil
}

// Config returns the configuration of the TrackRecords.
func (b *TrackRecords) Config() Config { return b.cfg }

func (s state) validate() error {
	if s.Version != stateVersion {
		return fmt.Errorf("version %d, want %d", s.Version, stateVersion)
	}
	if err := s.Config.Validate(); err != nil {
		return err
	}
	if s.Kinds == nil || s.Sources == nil || s.Open == nil || len(s.Kinds) > maxKinds || len(s.Sources) > maxKinds ||
		len(s.Open) > maxOpen {
		return fmt.Errorf("a part is missing or too large")
	}
	for name, k := range s.Kinds {
		if k == nil || !k.isSound() || s.Sources[k.Source] == nil {
			return fmt.Errorf("kind %q: a number is out of range", name)
		}
	}
	for name, a := range s.Sources {
		if a == nil || !a.Budget.isSound() || !a.Acting.isSound() || !a.Calibration.isSound() {
			return fmt.Errorf("source %q: a number is out of range", name)
		}
	}
	for id, o := range s.Open {
		if s.Kinds[o.Record.kindKey()] == nil || !o.isSound() {
			return fmt.Errorf("open record %q: a number is out of range", id)
		}
	}
	return nil
}

func (k *kind) isSound() bool {
	for _, t := range k.Tenants {
		if t == nil || !t.isSound() {
			return false
		}
	}
	return k.Tenants != nil && len(k.Tenants) <= maxTenants && k.Overall.isSound() && areFinite(k.MeanChance) &&
		k.MeanChance >= 0 &&
		k.MeanChance <= 1 &&
		k.Acting.isSound() && k.Calibration.isSound()
}

func (o opened) isSound() bool {
	for i := range sizes {
		if !areFinite(o.Jobs[i], o.Hours[i]) || o.Jobs[i] < 1 || o.Hours[i] <= 0 {
			return false
		}
	}
	return o.Record.Check() == nil && o.Decision.Size >= 0 && o.Decision.Size < sizes &&
		areFinite(o.Worth, o.Reserved) && o.Worth >= 0 && o.Reserved >= 0
}
