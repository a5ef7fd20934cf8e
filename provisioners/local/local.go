// Package local offers the machine that the program runs on as one node.
//
// Nothing is made or destroyed: Create adopts the machine and Delete frees it,
// work on it continues, and nothing is ever powered off. Every adoption has its
// own id, so that a late Delete of an old one cannot end a new one.
package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/local/discover"
)

// Host is this machine as a provisioner. It is safe for concurrent use.
type Host struct {
	config Config
	clock  clock.Clock

	mu    sync.Mutex
	state state
}

var (
	_ provisioners.Provisioner = (*Host)(nil)
	_ provisioners.Exclusive   = (*Host)(nil)
)

// New opens the machine, free or adopted as its state file says. It fails on a
// bad config and on a damaged file; whether there are GPUs is first asked by
// Offers and Create.
func New(config Config, clock clock.Clock) (*Host, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring local machine %q: %w", config.Name, err)
	}
	h := &Host{config: config, clock: clock}
	if err := h.loadState(); err != nil {
		return nil, fmt.Errorf("opening local machine %q: %w", config.Name, err)
	}
	return h, nil
}

// Name returns the configured name.
func (h *Host) Name() string { return h.config.Name }

// Exclusive says that the machine is that of one process: this one's.
func (h *Host) Exclusive() {}

// Adopted is what the machine is used as.
type Adopted struct {
	NodeID   string
	Simulate int    // how many simulated GPUs it has; 0: its own
	Seed     string // of the UUIDs of simulated GPUs
}

// Adopted returns what the machine is used as now; false: as nothing.
func (h *Host) Adopted() (Adopted, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	current := h.state.currentAdoption()
	if current == nil {
		return Adopted{}, false
	}
	a := Adopted{NodeID: current.Spec.NodeID}
	if current.Simulated {
		a.Simulate, a.Seed = len(current.Devices), h.config.HostID
	}
	return a, true
}

// Daemon is how the node's daemon is to run beside this process.
type Daemon struct {
	Wanted     bool
	SharedUser bool   // it may run holders' commands as the user of this process
	HoldDir    string // of holders' folders; empty: the program's choice
}

// Daemon returns how the node's daemon is to run.
func (h *Host) Daemon() Daemon {
	return Daemon{Wanted: h.config.Daemon == DaemonAuto, SharedUser: h.config.SharedUser, HoldDir: h.config.HoldDir}
}

// Offers returns the machine as the one offer. Its boot takes no time. Without
// a driver or a GPU the error is KindBadSpec and says what to do.
func (h *Host) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	devices, err := h.findDevices(ctx)
	if err != nil {
		return nil, err
	}
	offer := provisioners.Offer{
		Type: Type, Region: h.config.Region, Model: devices[0].Model, GPUs: len(devices),
		MemoryMiB: devices[0].MemoryMiB,
		Price:     money.MicroUSD(h.config.Price), Simulated: h.config.Simulate > 0,
	}
	for _, device := range devices {
		offer.MemoryMiB = min(offer.MemoryMiB, device.MemoryMiB)
	}
	return []provisioners.Offer{offer}, nil
}

// findDevices asks the source and turns "nothing here" into advice.
func (h *Host) findDevices(ctx context.Context) ([]capacity.Device, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	devices, err := h.config.Source.Devices(ctx)
	const advice = "install the NVIDIA driver, or set simulate: 4 for four simulated GPUs"
	switch {
	case errors.Is(err, discover.ErrNoDriver):
		return nil, &provisioners.Error{Kind: provisioners.KindBadSpec, Scope: h.config.Name, Message: advice, Err: err}
	case err != nil:
		return nil, &provisioners.Error{Kind: provisioners.KindTransient, Message: "looking for GPUs", Err: err}
	case len(devices) == 0:
		return nil, &provisioners.Error{
			Kind: provisioners.KindBadSpec, Scope: h.config.Name,
			Message: "the NVIDIA driver is here, but no GPU; set simulate: 4 for four simulated GPUs",
		}
	}
	return h.withOfferedModel(devices), nil
}

// withOfferedModel gives all devices the one model that the machine is offered as, which is
// what the health gate will look for.
func (h *Host) withOfferedModel(devices []capacity.Device) []capacity.Device {
	model := h.config.Model
	if model == "" {
		model = devices[0].Model
		if slices.ContainsFunc(devices, func(d capacity.Device) bool { return d.Model != model }) {
			model = "mixed"
		}
	}
	if h.config.Simulate > 0 {
		model = devices[0].Model // it says SIM
	}
	devices = slices.Clone(devices)
	for i := range devices {
		devices[i].Model = model
	}
	return devices
}

// Create adopts the machine. It is KindCapacity while another token holds it.
func (h *Host) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.checkRequest(ctx, token, spec); err != nil {
		return provisioners.Instance{}, err
	}
	if known := h.state.findAdoption(func(a adoption) bool { return a.Token == token }); known != nil {
		if known.Spec.Identity() != spec.Identity() {
			return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec, "the token was used for %+v",
				known.Spec)
		}
		return known.portInstance(), nil
	}
	if current := h.state.currentAdoption(); current != nil {
		return provisioners.Instance{}, &provisioners.Error{
			Kind: provisioners.KindCapacity, Scope: h.config.Name,
			Message: "this machine is already node " + current.Spec.NodeID,
		}
	}
	return h.adoptHost(ctx, token, spec)
}

func (h *Host) checkRequest(ctx context.Context, token string, spec provisioners.Spec) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	if err := spec.Check(token); err != nil {
		return err
	}
	if spec.Type != Type || spec.Region != "" && spec.Region != h.config.Region {
		return provisioners.Errorf(provisioners.KindBadSpec, "no type %q in region %q: this machine is %q in %q",
			spec.Type, spec.Region, Type, h.config.Region)
	}
	return nil
}

func (h *Host) adoptHost(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	devices, err := h.findDevices(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	now := h.clock.Now()
	made := adoption{
		ID: adoptionID(h.config.HostID, token, now), Token: token, Spec: spec,
		Born: now, Devices: devices, Simulated: h.config.Simulate > 0,
	}
	if err := h.saveState(append(slices.Clone(h.state.Adoptions), made)); err != nil {
		return provisioners.Instance{}, err
	}
	return made.portInstance(), nil
}

// Get returns the adoption while it lasts. A freed machine is unknown at once.
func (h *Host) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	current := h.state.currentAdoption()
	if current == nil || current.ID != id {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
	}
	return current.portInstance(), nil
}

// List returns the adoption when it is the owner's. It is always complete.
func (h *Host) List(ctx context.Context, owner string) (provisioners.List, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.List{}, err
	}
	list := provisioners.List{Complete: true}
	if current := h.state.currentAdoption(); current != nil && current.Spec.Owner == owner {
		list.Instances = append(list.Instances, current.portInstance())
	}
	return list, nil
}

// Delete frees the machine.
func (h *Host) Delete(ctx context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	current := h.state.currentAdoption()
	if current == nil || current.ID != id {
		return nil
	}
	adoptions := slices.Clone(h.state.Adoptions)
	adoptions[len(adoptions)-1].Ended = h.clock.Now()
	return h.saveState(adoptions)
}
