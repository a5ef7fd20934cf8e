package predict

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/forewarm/forewarm/core/forecast"
)

// tenant is what is known of one tenant.
type tenant struct {
	series *forecast.Series
	counts map[int64]int // GPUs by predicted window, in windows since 1970
}

func (p *Predictor) tenant(name string) (*tenant, error) {
	if t, ok := p.tenants[name]; ok {
		return t, nil
	}
	if len(p.tenants) >= maxTenants {
		return nil, fmt.Errorf("there are %d tenants already", maxTenants)
	}
	series, err := forecast.New(p.cfg.Series)
	if err != nil {
		return nil, err
	}
	t := &tenant{series: series, counts: map[int64]int{}}
	p.tenants[name] = t
	return t, nil
}

const stateVersion = 1

type state struct {
	Version int                    `json:"version"`
	Window  int64                  `json:"window_seconds"`
	Tenants map[string]tenantState `json:"tenants"`
	Trust   *trustState            `json:"trust,omitempty"` // nil in states that are older than it
}

type tenantState struct {
	Series *forecast.Series `json:"series"`
	Counts map[int64]int    `json:"counts"`
}

// MarshalJSON writes all that was learned.
func (p *Predictor) MarshalJSON() ([]byte, error) {
	s := state{Version: stateVersion, Window: p.seconds(), Tenants: map[string]tenantState{}, Trust: p.trust.state()}
	for name, t := range p.tenants {
		s.Tenants[name] = tenantState{Series: t.series, Counts: t.counts}
	}
	return json.Marshal(s)
}

// Restore replaces what was learned by what MarshalJSON wrote. A state made with
// another configuration is an error and changes nothing: learn from the history
// again instead.
func (p *Predictor) Restore(data []byte) error {
	var s state
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return fmt.Errorf("decoding a prediction state: %w", err)
	}
	if s.Version != stateVersion || s.Window != p.seconds() {
		return fmt.Errorf("checking a prediction state: version %d with windows of %d s, want %d with %d s",
			s.Version, s.Window, stateVersion, p.seconds())
	}
	tenants := map[string]*tenant{}
	for name, t := range s.Tenants {
		if t.Series == nil || t.Series.Config() != p.cfg.Series {
			return fmt.Errorf("checking a prediction state: its statistics were made with another configuration")
		}
		if t.Counts == nil {
			t.Counts = map[int64]int{}
		}
		tenants[name] = &tenant{series: t.Series, counts: t.Counts}
	}
	t, err := s.Trust.restore(p.cfg.Evidence)
	if err != nil {
		return fmt.Errorf("checking a prediction state: evidence: %w", err)
	}
	p.tenants, p.trust = tenants, t
	return nil
}
