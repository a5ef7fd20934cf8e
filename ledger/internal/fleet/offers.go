package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

const (
	// reportEvery is how often an unchanged report is written down again.
	reportEvery = 10 * time.Minute
	// reportLasts is how long a report is believed: a worker that runs repeats it.
	reportLasts = 24 * time.Hour
)

// ReportOffers writes down what a provisioner offers, so that pools can be held
// against it by processes that are not configured with it. Repeated, it changes
// nothing for a while.
func (l Fleet) ReportOffers(ctx context.Context, name string, offers []ledger.Offer) error {
	offers = slices.Clone(offers)
	slices.SortFunc(offers, func(a, b ledger.Offer) int {
		return strings.Compare(a.Region+"/"+a.Type,
			b.Region+"/"+b.Type)
	})
	return l.Store.InTx(ctx, func(tx ledger.Tx) error {
		known, err := tx.Provisioners()
		if err != nil {
			return fmt.Errorf("reading provisioners: %w", err)
		}
		for _, p := range known {
			if p.Name == name && slices.Equal(p.Offers, offers) && tx.Now().Sub(p.ReportedAt) < reportEvery {
				return nil
			}
		}
		return tx.Save(ledger.Change{Provisioners: []ledger.Provisioner{{Name: name, Offers: offers,
			ReportedAt: tx.Now()}}})
	})
}

// KnowsProvisioner reports whether any worker has said of late that it is
// configured with the provisioner.
func (l Fleet) KnowsProvisioner(ctx context.Context, name string) (known bool, err error) {
	err = l.Store.Read(ctx, func(r ledger.Reader) error {
		all, err := recentProvisioners(r)
		known = slices.ContainsFunc(all, func(p ledger.Provisioner) bool { return p.Name == name })
		return err
	})
	return known, err
}

func recentProvisioners(r ledger.Reader) ([]ledger.Provisioner, error) {
	all, err := r.Provisioners()
	if err != nil {
		return nil, fmt.Errorf("reading provisioners: %w", err)
	}
	return slices.DeleteFunc(all, func(p ledger.Provisioner) bool { return r.Now().Sub(p.ReportedAt) > reportLasts }),
		nil
}

// checkOffered refuses a pool whose machines no provisioner makes, or whose
// machines would never pass the health gate. Before any worker has reported there
// is nothing to hold it against, and the gate alone decides.
func checkOffered(p capacity.Pool, known []ledger.Provisioner) error {
	if len(known) == 0 {
		return nil
	}
	for i, s := range p.Offerings() {
		at := ""
		if i > 0 {
			at = fmt.Sprintf("alternates[%d].", i-1)
		}
		if err := checkSource(p, s, at, known); err != nil {
			return err
		}
	}
	return nil
}

func checkSource(p capacity.Pool, s capacity.Offering, at string, known []ledger.Provisioner) error {
	found := slices.IndexFunc(known, func(k ledger.Provisioner) bool { return k.Name == s.Provisioner })
	if found < 0 {
		var names []string
		for _, k := range known {
			names = append(names, k.Name)
		}
		return &ledger.InvalidError{Field: at + "provisioner",
			Rule: fmt.Sprintf("must be one that a worker is configured with, and %q is none", s.Provisioner),
			Fix:  "name one of these, or start a worker that has it: " + strings.Join(names, ", "), Allowed: names}
	}
	offers := known[found].Offers
	i := slices.IndexFunc(offers, func(o ledger.Offer) bool { return o.Region == s.Region && o.Type == s.Type })
	if i < 0 {
		var kinds []string
		for _, o := range offers {
			kinds = append(kinds, fmt.Sprintf("%q in region %q", o.Type, o.Region))
		}
		return &ledger.InvalidError{Field: at + "instance_type",
			Rule: fmt.Sprintf("must be one that %s offers, and %q in region %q is none", s.Provisioner, s.Type,
				s.Region),
			Fix: "choose one of these: " + strings.Join(kinds, ", ")}
	}
	return checkMachine(p, offers[i])
}

// checkMachine refuses what no machine of the offer could be.
func checkMachine(p capacity.Pool, o ledger.Offer) error {
	switch {
	case p.Observed && !o.Observed:
		return &ledger.InvalidError{Field: "use", Rule: fmt.Sprintf("must be reserved: %s is not in a cluster that its "+
			"provisioner watches", o.Type), Fix: "write reserved, or configure the provisioner with use: observed"}
	case o.Observed && !p.Observed:
		return &ledger.InvalidError{Field: "use", Rule: fmt.Sprintf("must be observed: the cluster's own scheduler "+
			"places the work on a %s", o.Type), Fix: "write observed, or configure the provisioner with use: reserved"}
	case p.PerNode != o.GPUs*p.Shares():
		return wrongGPUs(p, o)
	case o.Model != "" && !strings.EqualFold(p.Model, o.Model):
		return &ledger.InvalidError{Field: "model", Rule: fmt.Sprintf("must be %q: that is what a %s has", o.Model,
			o.Type),
			Fix: fmt.Sprintf("write %q", o.Model)}
	case o.MemoryMiB > 0 && p.MemoryMiB > o.MemoryMiB/p.Shares():
		most, of := o.MemoryMiB/p.Shares(), "a GPU of a "+o.Type
		if p.Shares() > 1 {
			of = fmt.Sprintf("one of %d shares of %s", p.Shares(), of)
		}
		return &ledger.InvalidError{Field: "gpu_memory_mib",
			Rule: fmt.Sprintf("must be at most %d MiB: %s has no more", most, of), Fix: fmt.Sprintf("write %d", most)}
	}
	return nil
}

// wrongGPUs says how many GPUs a node of the offer has.
func wrongGPUs(p capacity.Pool, o ledger.Offer) error {
	has, why := o.GPUs*p.Shares(), fmt.Sprintf("a %s has this many GPUs", o.Type)
	if p.Shares() > 1 {
		why = fmt.Sprintf("a %s has %s of %d shares each, and shares are what is counted", o.Type,
			phrase.Count(o.GPUs, "GPU"), p.Shares())
	}
	return &ledger.InvalidError{Field: "gpus_per_node", Rule: fmt.Sprintf("must be %d: %s", has, why),
		Fix: fmt.Sprintf("write %d", has)}
}

// offersSimulated reports whether some source of a pool makes simulated machines.
func offersSimulated(p capacity.Pool, known []ledger.Provisioner) bool {
	return slices.ContainsFunc(p.Offerings(), func(s capacity.Offering) bool {
		return slices.ContainsFunc(known, func(k ledger.Provisioner) bool {
			return k.Name == s.Provisioner && slices.ContainsFunc(k.Offers, func(o ledger.Offer) bool {
				return o.Simulated && o.Region == s.Region && o.Type == s.Type
			})
		})
	})
}
