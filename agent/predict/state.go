package predict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/forecast"
)

// tenant is what is known of one tenant.
type tenant struct {
	series *forecast.Series
	counts map[int64]int // GPUs by predicted window, in windows since 1970
	class  class
}

func (p *Predictor) tenantNamed(name string) (*tenant, error) {
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
	c, err := p.model.Tenant(name)
	if err != nil {
		return nil, err
	}
	t := &tenant{series: series, counts: map[int64]int{}, class: class{tenant: c, shadows: p.experts.Class(c)}}
	p.tenants[name] = t
	return t, nil
}

const stateVersion = 2

type state struct {
	Version int                    `json:"version"`
	Window  int64                  `json:"window_seconds"`
	Fleet   *forecast.OnlineModel  `json:"fleet"`
	Experts *forecast.Experts      `json:"experts,omitempty"` // nil in states that are older than they
	Tenants map[string]tenantState `json:"tenants"`
	Trust   *trustState            `json:"trust,omitempty"` // nil in states that are older than it
}

type tenantState struct {
	Series *forecast.Series `json:"series"`
	Counts map[int64]int    `json:"counts"`
	Class  classState       `json:"class"`
}

// classState is the stored form of a class, beside what its model stores.
type classState struct {
	Waiting []event `json:"waiting,omitempty"`
	Told    int64   `json:"told"`
	Next    int64   `json:"next"`
	Target  int     `json:"target"`
	Steps   []step  `json:"steps,omitempty"`
}

func (c *class) storedState() classState {
	c.sortEvents()
	return classState{c.waiting, c.told, c.next, c.target, c.steps}
}

// isSound reports whether the state can have come from listening.
func (s classState) isSound() bool {
	for _, e := range s.Waiting {
		if e.GPUs < 1 || e.GPUs > forecast.MaxJob || e.At < 0 || e.Submitted < 0 || e.Started < 0 {
			return false
		}
	}
	return s.Told >= 0 && s.Next >= 0 && s.Target >= 0
}

// MarshalJSON writes all that was learned.
func (p *Predictor) MarshalJSON() ([]byte, error) {
	s := state{Version: stateVersion, Window: p.windowSeconds(), Fleet: p.model, Experts: p.experts,
		Tenants: map[string]tenantState{}, Trust: p.trust.storedState()}
	for name, t := range p.tenants {
		s.Tenants[name] = tenantState{Series: t.series, Counts: t.counts, Class: t.class.storedState()}
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
	if s.Version != stateVersion || s.Window != p.windowSeconds() {
		return fmt.Errorf("checking a prediction state: version %d with windows of %d s, want %d with %d s",
			s.Version, s.Window, stateVersion, p.windowSeconds())
	}
	if s.Fleet == nil {
		return errors.New("checking a prediction state: what the forecaster learned is missing")
	}
	if s.Fleet.Pace() != p.cfg.Pace {
		return fmt.Errorf("checking a prediction state: its clock has pace %d, want %d", s.Fleet.Pace(), p.cfg.Pace)
	}
	if s.Experts == nil {
		s.Experts = forecast.NewExperts()
	}
	tenants := map[string]*tenant{}
	for name, t := range s.Tenants {
		if t.Series == nil || t.Series.Config() != p.cfg.Series {
			return fmt.Errorf("checking a prediction state: its statistics were made with another configuration")
		}
		if t.Counts == nil {
			t.Counts = map[int64]int{}
		}
		known, err := s.Fleet.Tenant(name)
		if err != nil || !t.Class.isSound() {
			return errors.Join(errors.New("checking a prediction state: what is known of a tenant is damaged"), err)
		}
		tenants[name] = &tenant{series: t.Series, counts: t.Counts, class: class{
			tenant: known, waiting: t.Class.Waiting, told: t.Class.Told, next: t.Class.Next, target: t.Class.Target,
			steps: t.Class.Steps, shadows: s.Experts.Class(known),
		}}
	}
	t, err := s.Trust.restoreTrust(p.cfg.Evidence)
	if err != nil {
		return fmt.Errorf("checking a prediction state: evidence: %w", err)
	}
	p.model, p.experts, p.tenants, p.trust = s.Fleet, s.Experts, tenants, t
	return nil
}
