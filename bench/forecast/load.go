package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/bench/forecast/regimes"
	"github.com/forewarm/forewarm/bench/traces"
	"github.com/forewarm/forewarm/core/backtest"
)

// readAll reads the traces.
func readAll(paths []string) ([]lesson, error) {
	var all []lesson
	for _, path := range paths {
		t, err := traces.Read(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, lesson{name: traces.Name(path), trace: t})
	}
	return all, nil
}

// listRegimes returns the names that a comma-separated list stands for.
func listRegimes(list string) ([]string, error) {
	var known, all []string
	for _, r := range regimes.All() {
		known = append(known, r.Name)
	}
	if list == "all" {
		return known, nil
	}
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		if !slices.Contains(known, name) {
			return nil, usageError(fmt.Sprintf("no regime is called %q; there are %s", name, strings.Join(known, ", ")))
		}
		all = append(all, name)
	}
	return all, nil
}

// drawRegimes draws the regimes of these names. They have no evidence and teach no prior.
func (c config) drawRegimes() []lesson {
	var all []lesson
	for _, r := range regimes.All() {
		if slices.Contains(c.regimes, r.Name) {
			all = append(all, lesson{name: r.Name, trace: r.Trace(c.seed), drawn: true})
		}
	}
	return all
}

// loadScenarios makes a scenario for each trace and boot time.
func loadScenarios(c config, traces []lesson) []*scenario {
	var all []*scenario
	for _, l := range traces {
		name, t := l.name, l.trace
		sparse, derived := withoutTenants(t, large)
		for _, boot := range c.boots {
			all = append(all, &scenario{name: name, of: l.name, trace: t, boot: boot})
			if derived {
				all = append(all, &scenario{name: name + "_sparse", of: l.name, trace: sparse, boot: boot})
			}
			if c.pooled && len(t.Tenants) > 1 {
				all = append(all, &scenario{name: name + "_pooled", of: l.name, trace: poolTenants(t), boot: boot,
					members: t.Tenants})
			}
			all = append(all, failingBoots(c.failures, l.name, name, t, boot)...)
			all = append(all, spreadBoots(c.spreads, l.name, name, t, boot)...)
			all = append(all, limitedPools(c.capacity, l.name, name, t, boot)...)
		}
		if derived {
			name, t = name+"_sparse", sparse
		}
		if l.drawn {
			continue
		}
		for _, s := range scenariosWithEvidence(name, t, c.channels) {
			s.of = l.name
			all = append(all, s)
		}
	}
	for _, s := range all {
		s.worths = c.worths
	}
	return all
}

// poolTenants is a trace whose tenants share all units: what one leaves idle may serve
// another, and what is held is held for all of them together. The ID of a job is then the name of its tenant.
func poolTenants(t backtest.Trace) backtest.Trace {
	out := backtest.Trace{Tenants: []string{"all"}, Jobs: slices.Clone(t.Jobs)}
	for i := range out.Jobs {
		out.Jobs[i].ID, out.Jobs[i].Tenant = t.Tenants[t.Jobs[i].Tenant], 0
	}
	return out
}

// scenariosWithEvidence makes a scenario of a trace for each source of messages, with boots
// of five minutes.
func scenariosWithEvidence(name string, t backtest.Trace, channels []channel) []*scenario {
	var all []*scenario
	for _, ch := range channels {
		all = append(all, &scenario{
			name:  fmt.Sprintf("%s_evidence_%.0f_%.0f", name, 100*ch.recall, 100*ch.precision),
			trace: t, boot: 300, messages: Messages(t, ch.recall, ch.precision),
		})
	}
	return all
}

// large are the four groups that make up nine tenths of the Philly trace. What
// is left of it looks like the tenants of one small customer.
var large = []string{"6214e9", "11cb48", "6c71a0", "b436b2"}

// withoutTenants returns the trace without some of its tenants, if it has them all.
func withoutTenants(t backtest.Trace, tenants []string) (backtest.Trace, bool) {
	var out backtest.Trace
	index := make([]int, len(t.Tenants))
	for i, name := range t.Tenants {
		index[i] = len(out.Tenants)
		if !slices.Contains(tenants, name) {
			out.Tenants = append(out.Tenants, name)
		}
	}
	for _, j := range t.Jobs {
		if slices.Contains(tenants, t.Tenants[j.Tenant]) {
			continue
		}
		j.Tenant = index[j.Tenant]
		out.Jobs = append(out.Jobs, j)
	}
	return out, len(out.Tenants)+len(tenants) == len(t.Tenants) && len(out.Jobs) > 0
}
