package ec2test

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// Line is one machine on the bill.
type Line struct {
	ID, Token, Type, Zone, Market string
	Tags                          map[string]string
	State                         string
	UserData                      string // as the machine reads it
	// DeletedDisks are its disks that ended with it, or will.
	DeletedDisks []string
	From, To     time.Time // To is the bill's time while the machine stands
	Billed       time.Duration
	Cost         money.MicroUSD
}

// MinBilled is the least that a machine is billed for.
const MinBilled = time.Minute

// Bill returns a line for every machine that was ever made, in the order of
// their birth: seconds from launch to the beginning of the end, at least a
// minute. (EC2 begins to bill when a machine runs, some seconds later.)
func (r *Region) Bill() []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.advanceMachines()
	var lines []Line
	for _, m := range r.machines {
		lines = append(lines, m.billLine(r.config, now))
	}
	return lines
}

func (m *machine) billLine(c Config, now time.Time) Line {
	to := now.Truncate(time.Second)
	if m.endedAt(now) {
		to = m.stop
	}
	billed := max(to.Sub(m.born), MinBilled)
	line := Line{
		ID: m.id, Token: m.token, Type: m.kind.Name, Zone: m.zone, Market: m.market, Tags: map[string]string{},
		State: m.stateAt(c, now), UserData: m.userText(), DeletedDisks: m.ephemeral, From: m.born, To: to, Billed: billed,
		Cost: m.price.For(billed),
	}
	for _, row := range m.tagRows(now) {
		line.Tags[row.Key] = row.Value
	}
	return line
}

// LiveLines returns the lines of the machines whose end has not begun.
func (r *Region) LiveLines() []Line {
	var live []Line
	for _, line := range r.Bill() {
		if line.State == pending || line.State == running {
			live = append(live, line)
		}
	}
	return live
}

// Foreign makes a machine of somebody else in the account and returns whether it
// still stands.
func (r *Region) Foreign(kind string, tags map[string]string) (stands func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.advanceMachines()
	m := &machine{zone: r.config.Zones[0], image: r.config.Images[0].ID, market: "on-demand",
		born: now.Truncate(time.Second)}
	m.kind, _ = r.config.findType(kind)
	m.price = m.kind.OnDemand
	for key, value := range tags {
		m.tags = append(m.tags, tag{key: key, value: value, at: m.born})
	}
	r.addMachine(m)
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.advanceMachines()
		return m.stop.IsZero()
	}
}
