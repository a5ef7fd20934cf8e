package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/agent/outbox"
	"github.com/forewarm/forewarm/internal/statefile"
)

// state is what an agent has learned, as it is kept in a file.
type state struct {
	Version int                `json:"version"`
	Seen    map[string]jobItem `json:"seen"`
	Learned json.RawMessage    `json:"learned"`
	// Sources are those that it was learned from, by name; none in states of versions that did not tell.
	Sources []string      `json:"sources,omitempty"`
	Unsent  outbox.Outbox `json:"unsent,omitzero"` // what the control plane is still to be told
	Boots   *boots        `json:"boots,omitempty"` // of the pool, as it last told
}

// boots are how long those of a pool take.
type boots struct {
	Boot time.Duration `json:"boot"`
	Late time.Duration `json:"late"` // how much longer nearly all take at most
}

// restoreBoots has the forecaster count on the boots that were learned before, until the pool tells.
func (a *Agent) restoreBoots(learned *boots) {
	if learned != nil && learned.Boot >= time.Second && a.cfg.Place.Boot == 0 {
		a.boots = learned
		a.cfg.Predict.SetBoot(learned.Boot, learned.Late)
	}
}

// Boot is how long a boot is taken to last, and how that is known.
func (a *Agent) Boot() (boot time.Duration, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	boot = a.cfg.Predict.Boot()
	switch {
	case a.cfg.Place.Boot > 0:
		return boot, "place.boot says so"
	case a.boots != nil:
		return boot, "the pool's did when it was last asked"
	default:
		return boot, "no boot of the pool is known yet; in mode auto the agent asks the pool"
	}
}

const stateVersion = 2

// loadState restores what was learned before. A state that does not fit the
// configuration is an error with the fix: learning again is the user's choice,
// since it takes the whole history.
func (a *Agent) loadState() error {
	if a.cfg.State == "" {
		return nil
	}
	data, err := os.ReadFile(a.cfg.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the agent's state: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil || s.Version != stateVersion {
		return fmt.Errorf("reading the agent's state %s: it is damaged or has another version; to learn again, delete "+
			"it and the checkpoint next to it", a.cfg.State)
	}
	if err := a.adoptState(s.Sources); err != nil {
		return err
	}
	if err := a.cfg.Predict.Restore(s.Learned); err != nil {
		return fmt.Errorf("restoring from %s (to learn again, delete it): %w", a.cfg.State, err)
	}
	a.unsent = s.Unsent
	a.restoreBoots(s.Boots)
	for id, j := range s.Seen {
		a.seen[id] = j
		if j.Submitted.After(a.newest) {
			a.newest = j.Submitted
		}
	}
	return nil
}

// ForeignStateError says that a state was learned from other sources than those that are read now.
type ForeignStateError struct {
	Path    string
	Sources []string // that it was learned from
}

// Error names the sources.
func (e *ForeignStateError) Error() string {
	return fmt.Sprintf("the state %s was learned from %s", e.Path, strings.Join(e.Sources, ", "))
}

// adoptState takes a state over that was learned from one of the agent's sources, or from sources that are not known.
func (a *Agent) adoptState(sources []string) error {
	mine := func(name string) bool { return slices.Contains(a.cfg.Sources, name) }
	if len(a.cfg.Sources) > 0 && len(sources) > 0 && !slices.ContainsFunc(sources, mine) {
		return &ForeignStateError{Path: a.cfg.State, Sources: sources}
	}
	a.sources = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(sources), a.cfg.Sources...))))
	return nil
}

// saveState makes what was learned durable: a whole new file takes the old one's
// place.
func (a *Agent) saveState() error {
	if a.cfg.State == "" {
		return nil
	}
	learned, err := a.cfg.Predict.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding the agent's state: %w", err)
	}
	data, err := json.Marshal(state{Version: stateVersion, Seen: a.seen, Learned: learned, Unsent: a.unsent,
		Sources: a.sources, Boots: a.boots})
	if err != nil {
		return fmt.Errorf("encoding the agent's state: %w", err)
	}
	if err := statefile.Replace(a.cfg.State, data); err != nil {
		return fmt.Errorf("keeping the agent's state: %w", err)
	}
	return nil
}

// keepSeen is how long a job's id is remembered after newer ones were counted,
// if it is over: an older row is refused by the statistics themselves, whose
// windows are shorter. keepOpen is how long a job that runs is, whose end may
// never be told.
const (
	keepSeen = 48 * time.Hour
	keepOpen = 90 * 24 * time.Hour
)

// forgetJobs drops the jobs that need not be remembered, so that reading years of
// history does not keep years of ids.
func (a *Agent) forgetJobs() {
	for id, j := range a.seen {
		age := a.newest.Sub(j.Submitted)
		if age <= keepSeen || !j.Over && age <= keepOpen {
			continue
		}
		if !j.Over {
			a.cfg.Predict.Finish(a.cfg.Tenant, j.Submitted, time.Time{}, j.GPUs, j.Submitted.Add(keepOpen), j.As)
		}
		delete(a.seen, id)
	}
}
