package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/provisioners"
)

// stateVersion changes when an older program could misread the file.
const stateVersion = 1

// tokenMemory is how long a freed adoption's token is known.
const tokenMemory = 24 * time.Hour

// state is every adoption whose token is still known. Only the last one can be
// current.
type state struct {
	Version   int
	Adoptions []adoption
}

// adoption is one use of the machine as a node.
type adoption struct {
	ID, Token string
	Spec      provisioners.Spec
	Born      time.Time
	Ended     time.Time // zero while it lasts
	Devices   []capacity.Device
	Simulated bool
}

func adoptionID(host, token string, born time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", host, token, born.UnixMicro()))
	return "local-" + hex.EncodeToString(sum[:8])
}

// here is the address of this machine.
var here = access.Address{Kind: access.Local}

func (a adoption) portInstance() provisioners.Instance {
	instance := provisioners.Instance{
		ID: a.ID, Token: a.Token, Owner: a.Spec.Owner, NodeID: a.Spec.NodeID, Type: a.Spec.Type,
		Phase: provisioners.Terminated, CreatedAt: a.Born, Simulated: a.Simulated,
	}
	if a.Ended.IsZero() {
		instance.Phase, instance.Address, instance.Devices = provisioners.Running, here.String(), slices.Clone(a.Devices)
	}
	return instance
}

func (s state) findAdoption(wanted func(adoption) bool) *adoption {
	if i := slices.IndexFunc(s.Adoptions, wanted); i >= 0 {
		return &s.Adoptions[i]
	}
	return nil
}

// currentAdoption returns the adoption that lasts, nil when the machine is free.
func (s state) currentAdoption() *adoption {
	return s.findAdoption(func(a adoption) bool { return a.Ended.IsZero() })
}

// saveState makes the adoptions the state, on disk first. After a failure the old
// state is still used, though a restart may find the new one: KindUnknown.
func (h *Host) saveState(adoptions []adoption) error {
	horizon := h.clock.Now().Add(-tokenMemory)
	next := state{Version: stateVersion, Adoptions: slices.DeleteFunc(adoptions, func(a adoption) bool {
		return !a.Ended.IsZero() && a.Ended.Before(horizon)
	})}
	if h.config.StateFile != "" {
		if err := statefile.Write(h.config.StateFile, next); err != nil {
			return &provisioners.Error{Kind: provisioners.KindUnknown, Message: "saving the use of this machine",
				Err: err}
		}
	}
	h.state = next
	return nil
}

func (h *Host) loadState() error {
	if h.config.StateFile == "" {
		return nil
	}
	found, err := statefile.Read(h.config.StateFile, &h.state)
	if err != nil || !found {
		return err
	}
	if err := h.state.checkFields(); err != nil {
		return fmt.Errorf("state file %s is damaged: %w", h.config.StateFile, err)
	}
	return nil
}

func (s state) checkFields() error {
	if s.Version != stateVersion {
		return fmt.Errorf("it has version %d, this program reads %d", s.Version, stateVersion)
	}
	for i, a := range s.Adoptions {
		if a.ID == "" || a.Token == "" || a.Born.IsZero() {
			return errors.New("an adoption without id, token or birth")
		}
		if a.Ended.IsZero() && i < len(s.Adoptions)-1 {
			return errors.New("two adoptions at once")
		}
	}
	return nil
}
