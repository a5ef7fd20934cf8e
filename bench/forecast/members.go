package main

import (
	"fmt"
	"math"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// memberSettings runs Forewarm on a pool whose units all tenants share, while each of them is forecast alone, as their
// agents do: the pool holds the sum of what is held for each. Beside the family forewarm, which sees the pool as one
// tenant, it says what a forecast of the whole pool is worth.
func memberSettings(s *scenario) []setting {
	if s.members == nil {
		return nil
	}
	var all []setting
	for _, worth := range s.worthsOr(worths) {
		all = append(all, setting{label: fmt.Sprintf("r %g", worth), price: worth,
			policies: func() func(int) backtest.Policy {
				fleet, experts := forecast.NewOnlineModel(s.prior), forecast.NewExperts()
				p := s.prices(worth)
				return func(int) backtest.Policy {
					return newMembers(s.members, func(name string) backtest.Policy {
						f := newForewarned(fleet, name, p)
						f.shadows = experts.Class(f.tenant)
						return f
					})
				}
			}})
	}
	return all
}

// members are the policies of tenants that share their units.
type members struct {
	of      map[string]int // the place of a tenant, by its name
	each    []backtest.Policy
	targets []int
	sum     int
}

func newMembers(names []string, policy func(name string) backtest.Policy) *members {
	m := &members{of: map[string]int{}, targets: make([]int, len(names))}
	for i, name := range names {
		m.of[name] = i
		m.each = append(m.each, policy(name))
	}
	return m
}

// Submit tells the tenant that the job is of.
func (m *members) Submit(now int64, j backtest.Job) { m.each[m.of[j.ID]].Submit(now, j) }

// End tells the tenant that the job was of.
func (m *members) End(now int64, j backtest.Job, started int64) {
	m.each[m.of[j.ID]].End(now, j, started)
}

// Next is when the first of the tenants is to be asked.
func (m *members) Next() int64 {
	next := int64(math.MaxInt64)
	for _, p := range m.each {
		next = min(next, p.Next())
	}
	return next
}

// Target asks the tenants whose time has come, and adds up what is wanted for all.
func (m *members) Target(now int64) int {
	for i, p := range m.each {
		if p.Next() > now {
			continue
		}
		target := p.Target(now)
		m.sum += target - m.targets[i]
		m.targets[i] = target
	}
	return m.sum
}
