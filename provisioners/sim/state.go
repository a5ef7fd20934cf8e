package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/provisioners"
)

// stateVersion changes when an older program could misread the file.
const stateVersion = 1

type state struct {
	Version  int
	Machines []*machine
	Settled  Sum
}

// saveState makes every change so far durable. After a failure it is unknown what a
// restart would find, so the caller must not answer success; the change stays
// unsaved, and the next call that answers success saves it first.
func (c *Cloud) saveState() error {
	if c.config.StateFile == "" || !c.dirty {
		return nil
	}
	saved := state{Version: stateVersion, Settled: c.settled}
	for _, m := range c.tokens {
		saved.Machines = append(saved.Machines, m)
	}
	slices.SortFunc(saved.Machines, func(a, b *machine) int {
		return cmp.Or(a.Born.Compare(b.Born), cmp.Compare(a.ID, b.ID))
	})
	if err := statefile.Write(c.config.StateFile, saved); err != nil {
		return &provisioners.Error{Kind: provisioners.KindUnknown, Message: "saving the simulated cloud", Err: err}
	}
	c.dirty = false
	return nil
}

func (c *Cloud) loadState() error {
	if c.config.StateFile == "" {
		return nil
	}
	var saved state
	found, err := statefile.Read(c.config.StateFile, &saved)
	if err != nil || !found {
		return err
	}
	if saved.Version != stateVersion {
		return fmt.Errorf("state file %s has version %d, this program reads %d", c.config.StateFile, saved.Version,
			stateVersion)
	}
	c.settled = saved.Settled
	for _, m := range saved.Machines {
		if err := c.restoreMachine(m); err != nil {
			return fmt.Errorf("state file %s is damaged: %w", c.config.StateFile, err)
		}
	}
	return nil
}

func (c *Cloud) restoreMachine(m *machine) error {
	if m == nil || m.ID == "" || m.Token == "" || c.tokens[m.Token] != nil || m.Born.IsZero() {
		return errors.New("a machine without id, token or birth, or one that is there twice")
	}
	if m.Stage < live || m.Stage >= forgotten {
		return fmt.Errorf("machine %s: stage %d", m.ID, m.Stage)
	}
	if err := m.Offer.validateFields(); err != nil {
		return fmt.Errorf("machine %s: %w", m.ID, err)
	}
	c.tokens[m.Token] = m
	if m.Stage < tokenOnly {
		c.shown[m.ID] = m
	}
	if m.Stage == live {
		c.taken[[2]string{m.Offer.Type, m.Offer.Region}]++
	}
	c.queueNextStage(m)
	return nil
}
