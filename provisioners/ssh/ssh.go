// Package ssh offers the operator's own machines, which exist already and are
// reached over SSH.
//
// Nothing is made: Create claims a machine and sets it up, Delete wipes it and
// frees it. The claim is on the machine itself, so that two control planes can
// never both have it and a restart forgets nothing. What runs there is one shell
// script, remote.sh, sent anew with every call.
//
// A token is tried on the machines of its type in an order of its own, the same
// for every repetition of the call. Each machine decides once: it is claimed
// for the token, or it was taken and lets the token pass for good. So later and
// concurrent calls reach the same machine in the same way. The price is that a
// machine that does not answer blocks the tokens that come by it: it may hold
// them. An operator who knows better sets out_of_service.
//
// It is no provisioners.Renewer: a machine that was switched off and on again
// would have forgotten to end by itself.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Fleet is the operator's machines as a provisioner. It is safe for concurrent
// use and keeps no state and no connection.
type Fleet struct {
	config Config
	hosts  []Host // in service
	clock  clock.Clock
}

var _ provisioners.Provisioner = (*Fleet)(nil)

// New returns the machines as a provisioner. It reads the key and the known
// hosts, and fails on a bad config or when one of them is missing. No machine is
// asked.
func New(config Config, clock clock.Clock) (*Fleet, error) {
	config = config.WithDefaults()
	err := config.Validate()
	if err == nil {
		err = config.checkFiles()
	}
	if err != nil {
		return nil, fmt.Errorf("configuring machines %q: %w", config.Name, err)
	}
	f := &Fleet{config: config, clock: clock}
	for _, h := range config.Hosts {
		if !h.OutOfService {
			f.hosts = append(f.hosts, h)
		}
	}
	return f, nil
}

// Name returns the configured name.
func (f *Fleet) Name() string { return f.config.Name }

// StartsDaemons reports whether the setup starts the daemons of machines' nodes.
func (f *Fleet) StartsDaemons() bool { return f.config.Setup.Daemon }

// Offers lists the types that the configured hosts have.
func (f *Fleet) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	var offers []provisioners.Offer
	seen := map[[2]string]bool{}
	for _, h := range f.config.Hosts {
		if key := [2]string{h.Type, h.Region}; !seen[key] {
			seen[key] = true
			offers = append(offers, h.portOffer(f.config.Boot))
		}
	}
	return offers, nil
}

// Get asks the machine that the id names, and its driver when it runs. A machine
// that does not answer is KindTransient.
func (f *Fleet) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	h, found := f.hostOf(id)
	if !found {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound,
			"no host in service has a claim %q", id)
	}
	r, err := f.askHost(ctx, h, call{verb: "look", args: append([]string{id}, f.probeArgs()...)})
	switch {
	case err != nil:
		return provisioners.Instance{}, err
	case r.state != "known":
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "host %s knows no claim %q",
			h.Name, id)
	}
	return r.portInstance(h), nil
}

// List asks every machine who has it. It is complete when all of them answered.
// Devices are those that were seen when the machine was last looked at.
func (f *Fleet) List(ctx context.Context, owner string) (provisioners.List, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.List{}, err
	}
	answers := f.askAll(ctx, call{verb: "standing", args: f.probeArgs()})
	list := provisioners.List{Complete: true}
	var failures []error
	seen := map[string]bool{} // one machine may stand in the config under two addresses
	for _, a := range answers {
		switch {
		case a.err != nil:
			failures = append(failures, a.err)
			list.Complete = false
		case a.state == "known" && a.claim.Owner == owner && !seen[a.claim.ID]:
			seen[a.claim.ID] = true
			list.Instances = append(list.Instances, a.portInstance(a.host))
		}
	}
	if len(failures) == len(answers) && len(failures) > 0 {
		return provisioners.List{}, &provisioners.Error{
			Kind: provisioners.KindOf(failures[0]), Message: "no host answers", Err: errors.Join(failures...),
		}
	}
	return list, nil
}

// answered is one host's answer.
type answered struct {
	report
	host Host
	err  error
}

// mostAtOnce is how many hosts are asked at the same time.
const mostAtOnce = 16

// askAll makes the call on every host in service.
func (f *Fleet) askAll(ctx context.Context, c call) []answered {
	answers := make([]answered, len(f.hosts))
	slots := make(chan struct{}, mostAtOnce)
	var group sync.WaitGroup
	for i, h := range f.hosts {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r, err := f.askHost(ctx, h, c)
			answers[i] = answered{report: r, host: h, err: err}
		})
	}
	group.Wait()
	return answers
}

// Delete starts the wipe; the machine is free when that succeeded. Repeating it
// repeats a wipe that failed.
func (f *Fleet) Delete(ctx context.Context, id string) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	h, found := f.hostOf(id)
	if !found {
		return nil
	}
	after := "clear"
	if f.config.KeepProcesses {
		after = "leave"
	}
	args := append([]string{id, f.clock.Now().Format(time.RFC3339Nano), after}, f.config.Wipe...)
	_, err := f.askHost(ctx, h, call{verb: "end", args: args})
	return err
}
