package forecast

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// stateVersion grows when the stored form of a Series changes its meaning.
const stateVersion = 1

// state is the stored form of a Series.
type state struct {
	Version int    `json:"version"`
	Config  Config `json:"config"`
	Started bool   `json:"started"`
	Open    int64  `json:"open"`
	Arrived int64  `json:"arrived"`
	Total   cell   `json:"total"`
	Bins    []cell `json:"bins"`
	Jobs    int64  `json:"jobs"`
	GPUs    int64  `json:"gpus"`
	Largest int    `json:"largest"`
}

// MarshalJSON writes the whole state. Read back, it gives the same forecasts to
// the last bit.
func (s *Series) MarshalJSON() ([]byte, error) {
	return json.Marshal(state{
		Version: stateVersion, Config: s.cfg, Started: s.started, Open: s.open, Arrived: s.arrived,
		Total: s.total, Bins: s.bins, Jobs: s.jobs, GPUs: s.gpus, Largest: s.largest,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote. A state of another version, or one
// that cannot have come from counting, is an error and s stays as it was.
func (s *Series) UnmarshalJSON(data []byte) error {
	var st state
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&st); err != nil {
		return fmt.Errorf("decoding a forecast state: %w", err)
	}
	if err := st.validate(); err != nil {
		return fmt.Errorf("checking a forecast state: %w", err)
	}
	*s = Series{
		cfg: st.Config, started: st.Started, open: st.Open, arrived: st.Arrived,
		total: st.Total, bins: st.Bins, jobs: st.Jobs, gpus: st.GPUs, largest: st.Largest,
	}
	return nil
}

func (st state) validate() error {
	if st.Version != stateVersion {
		return fmt.Errorf("version %d, want %d", st.Version, stateVersion)
	}
	if err := st.Config.Validate(); err != nil {
		return err
	}
	if int64(len(st.Bins)) != st.Config.binsPerPeriod() {
		return fmt.Errorf("%d bins, want %d", len(st.Bins), st.Config.binsPerPeriod())
	}
	if st.Open < 0 || st.Arrived < 0 || st.Jobs < 0 || st.GPUs < st.Jobs || st.Largest < 0 || st.Largest > MaxJob {
		return fmt.Errorf("a count is out of range")
	}
	for i, c := range append([]cell{st.Total}, st.Bins...) {
		if !c.isSound() {
			return fmt.Errorf("sums of bin %d are out of range", i-1)
		}
	}
	return nil
}
