package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Op names one call of the port.
type Op string

// The calls that faults can hit.
const (
	OpOffers Op = "offers"
	OpCreate Op = "create"
	OpGet    Op = "get"
	OpList   Op = "list"
	OpDelete Op = "delete"
	OpRenew  Op = "renew"
)

// Effect is what a fault does to a call.
type Effect string

// The effects.
const (
	// FailBefore does nothing and answers Fault.Kind. Any call.
	FailBefore Effect = "fail_before"
	// ExecuteAndTimeout does what was asked and answers KindUnknown. Create and
	// Delete.
	ExecuteAndTimeout Effect = "execute_and_timeout"
	// Truncate answers half of the rows, with Complete false. List.
	Truncate Effect = "truncate"
	// Deny answers KindNotFound for a machine that is there. Get.
	Deny Effect = "deny"
	// Ignore answers success, and the machine lives on. Delete.
	Ignore Effect = "ignore"
	// BootNever makes a machine that never leaves Booting. Create.
	BootNever Effect = "boot_never"
	// BootDies makes a machine that dies half-way through its boot. Create.
	BootDies Effect = "boot_dies"
)

// effects lists the calls that each effect makes sense for.
var effects = map[Effect][]Op{
	FailBefore:        {OpOffers, OpCreate, OpGet, OpList, OpDelete, OpRenew},
	ExecuteAndTimeout: {OpCreate, OpDelete},
	Truncate:          {OpList},
	Deny:              {OpGet},
	Ignore:            {OpDelete},
	BootNever:         {OpCreate},
	BootDies:          {OpCreate},
}

// Fault hits the next Times calls of Op. Faults of one Op queue up: the first
// one injected is used up first.
type Fault struct {
	Op     Op     `yaml:"op"`
	Effect Effect `yaml:"effect"`
	Times  int    `yaml:"times"`
	// Kind, Scope and RetryAfter shape the error of FailBefore.
	Kind       provisioners.Kind `yaml:"kind"`
	Scope      string            `yaml:"scope"`
	RetryAfter time.Duration     `yaml:"retry_after"`
}

func (f Fault) validateFields() error {
	ops, known := effects[f.Effect]
	switch {
	case !known:
		return fmt.Errorf("effect: %q is unknown", f.Effect)
	case !slices.Contains(ops, f.Op):
		return fmt.Errorf("op: %q is not one of %v, which %s can hit", f.Op, ops, f.Effect)
	case f.Times < 1:
		return fmt.Errorf("times: %d is not positive", f.Times)
	case f.Effect == FailBefore && !f.Kind.Known():
		return fmt.Errorf("kind: %q is not a kind of error, and fail_before needs one", f.Kind)
	}
	return nil
}

// Inject queues a fault. Faults are not kept across restarts.
func (c *Cloud) Inject(fault Fault) error {
	if err := fault.validateFields(); err != nil {
		return fmt.Errorf("injecting a fault: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[fault.Op] = append(c.faults[fault.Op], fault)
	return nil
}

// ClearFaults removes the faults of the call that have not hit yet.
func (c *Cloud) ClearFaults(op Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.faults, op)
}

// SetListLag changes Config.ListLag from now on.
func (c *Cloud) SetListLag(lag time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config.ListLag = max(0, lag)
}

// Kill makes the provider take the machine away now, as it takes spot machines
// and broken ones. An unknown or ended machine stays as it is.
func (c *Cloud) Kill(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.advanceMachines()
	if m := c.shown[id]; m != nil && !hasReached(m.Ended, now) {
		c.endMachine(m, now)
	}
	return c.saveState()
}

// Reclaim makes the provider take the machine back as it takes spot machines:
// with its offer's notice, counted from now. An unknown or ended machine stays
// as it is.
func (c *Cloud) Reclaim(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.advanceMachines()
	if m := c.shown[id]; m != nil && !hasReached(m.Ended, now) {
		c.reclaimMachine(m, now.Add(m.Offer.Notice))
	}
	return c.saveState()
}

// beginCall starts a call: it refuses an ended context, brings the world up to now
// and uses up one fault of the call, which is the zero Fault when there is none.
func (c *Cloud) beginCall(ctx context.Context, op Op) (time.Time, Fault, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return time.Time{}, Fault{}, err
	}
	now := c.advanceMachines()
	fault := c.nextFault(op)
	if fault.Effect == FailBefore {
		return now, fault, &provisioners.Error{
			Kind: fault.Kind, Scope: fault.Scope, RetryAfter: fault.RetryAfter,
			Message: "injected failure of " + string(op),
		}
	}
	return now, fault, nil
}

func (c *Cloud) nextFault(op Op) Fault {
	queue := c.faults[op]
	if len(queue) == 0 {
		return Fault{}
	}
	fault := queue[0]
	if queue[0].Times--; queue[0].Times == 0 {
		c.faults[op] = queue[1:]
	}
	return fault
}

// timedOut answers for a call that was carried out.
func (f Fault) timedOut(op Op) error {
	if f.Effect != ExecuteAndTimeout {
		return nil
	}
	return provisioners.Errorf(provisioners.KindUnknown, "injected time-out of %s", op)
}
