package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/forewarm/forewarm/agent/outbox"
)

// state is what an agent has learned, as it is kept in a file.
type state struct {
	Version int             `json:"version"`
	Seen    map[string]job  `json:"seen"`
	Learned json.RawMessage `json:"learned"`
	Unsent  outbox.Outbox   `json:"unsent,omitzero"` // what the control plane is still to be told
}

const stateVersion = 2

// load restores what was learned before. A state that does not fit the
// configuration is an error with the fix: learning again is the user's choice,
// since it takes the whole history.
func (a *Agent) load() error {
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
		return fmt.Errorf("reading the agent's state %s: it is damaged or of another version; delete it to learn again, with the checkpoint beside it", a.cfg.State)
	}
	if err := a.cfg.Predict.Restore(s.Learned); err != nil {
		return fmt.Errorf("restoring from %s (delete it to learn again): %w", a.cfg.State, err)
	}
	a.unsent = s.Unsent
	for id, j := range s.Seen {
		a.seen[id] = j
		if j.Submitted.After(a.newest) {
			a.newest = j.Submitted
		}
	}
	return nil
}

// save makes what was learned durable: a whole new file takes the old one's
// place.
func (a *Agent) save() error {
	if a.cfg.State == "" {
		return nil
	}
	learned, err := a.cfg.Predict.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding the agent's state: %w", err)
	}
	data, err := json.Marshal(state{Version: stateVersion, Seen: a.seen, Learned: learned, Unsent: a.unsent})
	if err != nil {
		return fmt.Errorf("encoding the agent's state: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(a.cfg.State), ".state-*")
	if err != nil {
		return fmt.Errorf("writing the agent's state: %w", err)
	}
	_, werr := f.Write(data)
	err = errors.Join(werr, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), a.cfg.State)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the agent's state: %w", err), os.Remove(f.Name()))
	}
	return nil
}
