package node

import "time"

// Heat is how hot a node was when that last mattered to where jobs start.
type Heat struct {
	Celsius  int       // of its hottest GPU; 0: it never mattered
	HotUntil time.Time // no job starts there until then; zero: it was never too hot
}

// HeatRules are the temperatures that matter, and for how long.
type HeatRules struct {
	WarmFrom int           // °C from which jobs start there only where no cooler node has room
	HotFrom  int           // °C from which no job starts there
	CoolDown time.Duration // for so long after it was last that hot no job starts there
}

// IsHot reports whether no job may start there now.
func (h Heat) IsHot(now time.Time) bool { return h.HotUntil.After(now) }

// IsWarm reports whether jobs start there only where no cooler node has room.
func (h Heat) IsWarm(r HeatRules) bool { return r.bandOf(h.Celsius) > cool }

// band is a range of temperatures within which nothing changes.
type band int

const (
	cool band = iota
	warm
	hot
)

func (r HeatRules) bandOf(celsius int) band {
	switch {
	case celsius >= r.HotFrom:
		return hot
	case celsius >= r.WarmFrom:
		return warm
	}
	return cool
}

// steadyBy is by how many °C a warm node must be cooler to count as cool: readings waver.
const steadyBy = 3

// After is the heat once the hottest GPU is said to have a temperature, in °C; 0: it is not known. It returns
// false if nothing that matters has changed: while a node stays hot, its time is put off in
// steps of half the cool-down, so that not each reading is written.
func (h Heat) After(celsius int, r HeatRules, now time.Time) (Heat, bool) {
	was, is := r.bandOf(h.Celsius), r.bandOf(celsius)
	switch {
	case is == hot && was == hot && h.HotUntil.Sub(now) >= r.CoolDown/2:
		return h, false
	case is == hot || was == hot && h.IsHot(now):
		return Heat{Celsius: celsius, HotUntil: now.Add(r.CoolDown)}, true
	case was == is || was == warm && is == cool && celsius > r.WarmFrom-steadyBy:
		return h, false
	}
	return Heat{Celsius: celsius, HotUntil: h.HotUntil}, true
}
