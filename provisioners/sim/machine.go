package sim

import (
	"time"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

// machine is one simulated machine: a few instants, from which its phase is
// computed whenever somebody looks. It holds what it needs of its offer, so
// that a changed config does not change machines that exist.
type machine struct {
	ID, Token string
	Spec      provisioners.Spec
	Offer     Offer
	Born      time.Time
	Ready     time.Time // zero: never leaves Booting
	Deleted   time.Time // zero: nobody asked for its end
	Ended     time.Time // zero: no end in sight
	Expires   time.Time // when it ends by itself unless it is renewed; zero: never
	Reclaimed time.Time // when the provider takes it back; zero: never
	Stage     stage
}

// stage is how much of a machine the cloud still keeps.
type stage int

const (
	live      stage = iota // exists, takes stock
	shown                  // is gone, Get and List still show it
	tokenOnly              // is unknown to Get and List, Create still knows the token
	forgotten              // only its sums are left
)

// tokenMemory is how long a token is known after its machine's end, the same as
// EC2 promises for client tokens.
const tokenMemory = 24 * time.Hour

func (m *machine) phaseAt(at time.Time) provisioners.Phase {
	switch {
	case hasReached(m.Ended, at):
		return provisioners.Terminated
	case hasReached(m.Deleted, at):
		return provisioners.Terminating
	case hasReached(m.Ready, at):
		return provisioners.Running
	default:
		return provisioners.Booting
	}
}

func hasReached(instant, at time.Time) bool { return !instant.IsZero() && !at.Before(instant) }

func (m *machine) instanceAt(at time.Time) provisioners.Instance {
	instance := provisioners.Instance{
		ID: m.ID, Token: m.Token, Owner: m.Spec.Owner, NodeID: m.Spec.NodeID, Type: m.Spec.Type,
		Phase: m.phaseAt(at), CreatedAt: m.Born, Notice: m.noticeAt(at), Simulated: true,
	}
	if instance.Phase == provisioners.Terminated {
		instance.EndedAt = m.Ended
	}
	if instance.Phase == provisioners.Running {
		instance.Address = access.Address{Kind: access.Simulated, Host: m.ID}.String()
		instance.Devices = m.listDevices()
	}
	return instance
}

// noticeAt is what the provider announces of a machine that it will take back.
func (m *machine) noticeAt(at time.Time) *provisioners.Notice {
	if !hasReached(m.Reclaimed, at.Add(m.Offer.Notice)) || hasReached(m.Ended, at) || hasReached(m.Deleted, at) {
		return nil
	}
	return &provisioners.Notice{Kind: provisioners.NoticeInterruption, At: m.Reclaimed,
		Message: "the simulated cloud wants it back"}
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (m *machine) listDevices() []capacity.Device {
	devices := make([]capacity.Device, m.Offer.GPUs)
	for i := range devices {
		devices[i] = capacity.Device{UUID: deviceUUID(m.ID, i), Index: i, Model: m.Offer.Model,
			MemoryMiB: m.Offer.MemoryMiB}
	}
	return devices
}

// hourlyPrice of the machine per hour.
func (m *machine) hourlyPrice() money.MicroUSD { return money.MicroUSD(m.Offer.Price) }
