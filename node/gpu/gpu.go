// Package gpu looks at the GPUs of this machine.
//
// NVIDIA's library and nvidia-smi run in child processes only: a call into a wedged
// driver never returns, and a process that has the library open keeps a GPU from being
// reset. A child that does not answer in time is abandoned, not killed, as killing one
// has frozen GPUs; the next look starts another, up to a few that hang at once. What
// could not be read is absent from a look, and never zero.
package gpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/contract"
)

// Event is an XID as a source told it.
type Event struct {
	UUID  string `json:"uuid,omitempty"` // of the GPU, or
	PCI   string `json:"pci,omitempty"`  // its place, as NormalPCI writes it
	Code  int    `json:"code"`
	Count int    `json:"count"`
}

// Reading is one look, without health, and the XIDs that came since the last one.
type Reading struct {
	Look   contract.NodeLook
	Events []Event
	// HearsXIDs says that the source tells of all XIDs, so that none means none.
	HearsXIDs bool
}

// Source looks at the GPUs of one machine. It is used by one goroutine at a time.
type Source interface {
	// Look returns what is seen now. ErrNoDriver: this source finds no driver.
	Look(ctx context.Context) (Reading, error)
	// Close lets go of the driver.
	Close()
}

// ErrNoDriver says that a source finds no NVIDIA driver that it can ask.
var ErrNoDriver = errors.New("no NVIDIA driver found")

// The sources as a look names them.
const (
	FromNVML      = "nvml"
	FromSMI       = "nvidia-smi"
	FromSimulated = "simulated"
)

// FirstOf asks sources in order, each only where those before it find no driver.
type FirstOf []Source

// Look returns the first answer. A source that fails otherwise than by ErrNoDriver fails
// the look: figures of another source would not be comparable.
func (f FirstOf) Look(ctx context.Context) (Reading, error) {
	err := error(ErrNoDriver)
	for _, s := range f {
		var r Reading
		if r, err = s.Look(ctx); !errors.Is(err, ErrNoDriver) {
			return r, err
		}
	}
	return Reading{}, err
}

// Close closes all of them.
func (f FirstOf) Close() {
	for _, s := range f {
		s.Close()
	}
}

// NormalPCI writes a PCI address, such as 00000000:3B:00.0, as 0000:3b:00. One that cannot
// be read stays as it is.
func NormalPCI(text string) string {
	var domain, bus, device uint32
	if n, _ := fmt.Sscanf(text, "%x:%x:%x", &domain, &bus, &device); n < 3 {
		return text
	}
	return fmt.Sprintf("%04x:%02x:%02x", domain, bus, device)
}

// Of returns a pointer to a value that was read.
func Of[T any](v T) *T { return &v }
