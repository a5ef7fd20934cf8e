// Package exec lets the operator's own scripts make machines: each call is one
// process that reads a JSON document and writes one.
//
// A script is not trusted. Its output is decoded strictly and compared with the
// request; an answer that is not understood is never taken for "there is
// nothing". docs/provisioners/exec.md is the contract that a script is written
// against, with a complete one in deploy/exec.
package exec

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Scripts is the operator's scripts as a provisioner. It is safe for concurrent
// use and remembers nothing: that is the scripts' part.
type Scripts struct {
	config Config
	slots  chan struct{} // one for each process that may run at once
}

// Renewing is Scripts with a script that moves the end of machines.
type Renewing struct{ *Scripts }

var (
	_ provisioners.Provisioner = (*Scripts)(nil)
	_ provisioners.Renewer     = Renewing{}
)

// New returns the scripts as a provisioner, which is also a
// provisioners.Renewer when the config says that they renew. It fails on a bad
// config. No script is run, so that one that is not there yet is an error of the
// call that needs it. The clock is not used: the times are the scripts' own.
func New(config Config, _ clock.Clock) (provisioners.Provisioner, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring scripts %q: %w", config.Name, err)
	}
	s := &Scripts{config: config, slots: make(chan struct{}, config.Parallel)}
	if config.canRenew() {
		return Renewing{s}, nil
	}
	return s, nil
}

// Name returns the configured name.
func (s *Scripts) Name() string { return s.config.Name }

// StartsDaemons reports whether the scripts start the daemons of their nodes.
func (s *Scripts) StartsDaemons() bool { return s.config.Daemon }

// Offers returns the configured offers, or else asks the script.
func (s *Scripts) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	if len(s.config.Offers) > 0 {
		return s.configuredOffers(), nil
	}
	answer, err := s.askScript(ctx, question{Verb: verbOffers})
	if err != nil {
		return nil, err
	}
	return s.parseOffers(answer)
}

// Create asks the script for a machine. The answer must be about the token and
// carry the tags that were given; else a machine may exist that nobody would
// find, which is KindUnknown.
func (s *Scripts) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	if err := s.checkRequest(ctx, token, spec); err != nil {
		return provisioners.Instance{}, err
	}
	asked := &wireSpec{Type: spec.Type, Region: spec.Region, Owner: spec.Owner, NodeID: spec.NodeID}
	if s.config.canRenew() { // else nobody would move the end, and the machine would die in use
		asked.ExpiresAt = optionalTime(spec.ExpiresAt)
	}
	if spec.Daemon.URL != "" && s.config.Daemon {
		asked.Daemon = &wireDaemon{URL: spec.Daemon.URL, JoinToken: spec.Daemon.Token.Reveal()}
	}
	answer, err := s.askScript(ctx, question{Verb: verbCreate, Token: token, Spec: asked})
	if err != nil {
		return provisioners.Instance{}, err
	}
	made, err := answer.parseInstance(s.config.Simulated)
	if err == nil && (made.Token != token || made.Owner != spec.Owner || made.NodeID != spec.NodeID ||
		made.Type != spec.Type) {
		err = fmt.Errorf("it is about token %q, owner %q, node %q, type %q", made.Token, made.Owner, made.NodeID,
			made.Type)
	}
	if err != nil {
		return provisioners.Instance{}, notUnderstood(verbCreate, err)
	}
	return made, nil
}

// checkRequest refuses what can be refused without a script.
func (s *Scripts) checkRequest(ctx context.Context, token string, spec provisioners.Spec) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	if err := spec.Check(token); err != nil {
		return err
	}
	if len(s.config.Offers) > 0 && !slices.ContainsFunc(s.config.Offers, func(o Offer) bool {
		return o.Type == spec.Type && (spec.Region == "" || spec.Region == o.Region)
	}) {
		return provisioners.Errorf(provisioners.KindBadSpec, "no type %q in region %q", spec.Type, spec.Region)
	}
	return nil
}

// Get asks the script for one machine.
func (s *Scripts) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	answer, err := s.askAbout(ctx, question{Verb: verbGet, ID: id})
	if err != nil {
		return provisioners.Instance{}, err
	}
	found, err := answer.parseInstance(s.config.Simulated)
	if err == nil && found.ID != id {
		err = fmt.Errorf("it is about machine %q", found.ID)
	}
	if err != nil {
		return provisioners.Instance{}, notUnderstood(verbGet, err)
	}
	return found, nil
}

// List asks the script for the owner's machines. A row that is not understood
// leaves the list incomplete; a row with another owner is none of ours.
func (s *Scripts) List(ctx context.Context, owner string) (provisioners.List, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.List{}, err
	}
	answer, err := s.askScript(ctx, question{Verb: verbList, Owner: owner})
	if err != nil {
		return provisioners.List{}, err
	}
	return answer.parseList(owner, s.config.Simulated)
}

// askAbout asks about one machine. No machine has an empty id, and a script that
// forgets to look at it would answer for all of them.
func (s *Scripts) askAbout(ctx context.Context, q question) (answer, error) {
	if q.ID == "" {
		return answer{}, provisioners.Errorf(provisioners.KindNotFound, "no machine has an empty id")
	}
	return s.askScript(ctx, q)
}

// Delete asks the script to end the machine. A machine that the script does not
// know is gone.
func (s *Scripts) Delete(ctx context.Context, id string) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	answer, err := s.askAbout(ctx, question{Verb: verbDelete, ID: id})
	if provisioners.KindOf(err) == provisioners.KindNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return answer.checkEmpty(verbDelete)
}

// Renew asks the script to move the machine's end.
func (r Renewing) Renew(ctx context.Context, id string, until time.Time) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	answer, err := r.askAbout(ctx, question{Verb: verbRenew, ID: id, Until: optionalTime(until)})
	if err != nil {
		return err
	}
	return answer.checkEmpty(verbRenew)
}
