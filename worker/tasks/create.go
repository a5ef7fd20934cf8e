package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// createInstance asks the provider for the node's machine. The intent with its token is
// committed before; every repetition, by whomever, uses that token, so the
// answer may be lost at any point. An answer of the wrong kind is not an error
// here: the machine that died at birth is found by the check.
func (w Work) createInstance(ctx context.Context, c Claim) error {
	intent, err := w.Ledger.BeginCreate(ctx, c.Guard, c.Task.Subject)
	if err != nil {
		return fmt.Errorf("beginning to create node %s: %w", c.Task.Subject, err)
	}
	if !intent.Wanted {
		return nil
	}
	p, err := w.findProvisioner(intent.Node.Offering.Provisioner)
	if err != nil {
		return w.handleUnknownProvisioner(ctx, c, intent, err)
	}
	daemon, err := w.daemonFor(ctx, p, intent.Node)
	if err != nil {
		return fmt.Errorf("creating node %s: %w", intent.Node.ID, err)
	}
	made, err := p.Create(ctx, intent.Node.Token, provisioners.Spec{
		Type: intent.Node.Offering.Type, Region: intent.Node.Offering.Region, Owner: w.Deployment,
		NodeID:    intent.Node.ID,
		ExpiresAt: intent.Node.ExpiresAt, Daemon: daemon,
	})
	switch {
	case err == nil:
		err = w.Ledger.ReportCreated(ctx, c.Guard, intent.Node.ID, newInstance(p, made))
	case provisioners.Final(err):
		err = w.reportRefusal(ctx, c, intent, err)
	}
	if err != nil {
		return fmt.Errorf("creating node %s: %w", intent.Node.ID, err)
	}
	return nil
}

// daemonFor is what the daemon of a new machine needs, where its provisioner starts one. Each
// repetition of a create gets the same.
func (w Work) daemonFor(ctx context.Context, p provisioners.Provisioner, n node.Node) (provisioners.Daemon, error) {
	starter, ok := p.(provisioners.DaemonStarter)
	if !ok || w.JoinToken == nil || !starter.StartsDaemons() {
		return provisioners.Daemon{}, nil
	}
	daemon, err := w.JoinToken(ctx, n)
	if err != nil {
		return provisioners.Daemon{}, fmt.Errorf("making the join token of its daemon: %w", err)
	}
	return daemon, nil
}

// newInstance is what a provider said of a machine that is made or found now.
func newInstance(p provisioners.Provisioner, i provisioners.Instance) ledger.Instance {
	m := ledgerInstance(i)
	_, renews := p.(provisioners.Renewer)
	m.Endless = !renews
	return m
}

// handleUnknownProvisioner handles a node whose provisioner this worker does not have. Another may
// have it and try next; where none does, waiting would help nobody.
func (w Work) handleUnknownProvisioner(ctx context.Context, c Claim, intent ledger.CreateIntent, missing error) error {
	elsewhere, err := w.Ledger.KnowsProvisioner(ctx, intent.Node.Offering.Provisioner)
	if err == nil && !elsewhere {
		err = w.Ledger.ReportRefused(ctx, c.Guard, intent.Node.ID, "no_provisioner", missing.Error(), false)
	} else {
		err = errors.Join(missing, err)
	}
	if err != nil {
		return fmt.Errorf("creating node %s: %w", intent.Node.ID, err)
	}
	return nil
}

func (w Work) reportRefusal(ctx context.Context, c Claim, intent ledger.CreateIntent, refusal error) error {
	kind, message := provisioners.KindOf(refusal), ""
	var typed *provisioners.Error
	if errors.As(refusal, &typed) {
		message = typed.Message
	}
	w.Logger.WarnContext(ctx, "the provider refused a machine",
		"provisioner", intent.Node.Offering.Provisioner, "pool", intent.Pool.Name, "refusal", string(kind), "error",
		refusal)
	return w.Ledger.ReportRefused(ctx, c.Guard, intent.Node.ID, string(kind), obs.ScrubText(message),
		kind == provisioners.KindCapacity)
}
