// Package health decides how well a GPU is, from looks at it.
//
// A look is one reading of the GPU's counters and of the driver's error events (XIDs).
// What is told for sure, a lost GPU, a recovery action that the driver asks for, or a test of
// its memory that failed twice, counts at once. Everything else that would take a GPU out of use counts when a second
// look, AgreeAfter later or more, still finds it. An unhealthy GPU does not become healthy by
// silence: its faults last until they are cleared, by an operator or because the machine
// booted anew, which begins a new Track. A degraded one recovers after QuietFor without a
// fault. A GPU that cannot be asked is unknown after MissedLooks looks.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// State is how well a GPU is.
type State string

// The states of a GPU, best first but for Unknown, which says nothing.
const (
	Unknown   State = "unknown"   // nobody can tell: no look so far, or too many in a row failed
	Healthy   State = "healthy"   // nothing speaks against it
	Degraded  State = "degraded"  // usable, and to be watched or reset before it is handed over
	Unhealthy State = "unhealthy" // must not be handed out
)

// severity orders the states by how little the GPU can be used.
var severity = map[State]int{Unknown: 0, Healthy: 1, Degraded: 2, Unhealthy: 3}

// Worse reports whether s leaves less to be done with a GPU than o.
func (s State) Worse(o State) bool { return severity[s] > severity[o] }

// The rules by which a GPU is not healthy, as evidence names them. XIDs are named
// xid_NUMBER.
const (
	RuleLost         = "gpu_lost"
	RuleRecovery     = "recovery_action"
	RuleRemapFailed  = "row_remap_failed"
	RuleRemapPending = "row_remap_pending"
	RuleSlowdown     = "hardware_slowdown"
	RuleXIDRate      = "xid_rate"
	RuleBurnIn       = "burn_in"
)

// The bounds of what a track remembers.
const (
	mostEvents = 128
	mostSlow   = 256
	mostFaults = 32
)

// Reading is one look at one GPU, as far as it says something of its health.
type Reading struct {
	Lost bool // it was there when the daemon began, and is not any more
	// Recovery is the action that the driver asks for (NVML's field 230), such as
	// "reset"; "none" or empty, where it cannot be read: none.
	Recovery                  string
	RemapPending, RemapFailed bool
	BurnIn                    string // why the test of its memory failed, twice; empty: it did not
	Slowdown                  bool   // the hardware itself slows it down: heat or power
	XIDs                      []XID  // since the last look
}

// XID is an error event of the driver, of which Count came together.
type XID struct {
	Code   int
	Count  int
	Shared bool // other GPUs of the node had the same: software, not this GPU
}

// Fault is one thing that speaks against a GPU.
type Fault struct {
	Rule   string    `json:"rule"`
	Detail string    `json:"detail"` // a sentence for people
	Level  State     `json:"level"`
	First  time.Time `json:"first"` // when it was first found
	Last   time.Time `json:"last"`
	Sure   bool      `json:"sure"`  // it counts; others wait for a second look
	Stays  bool      `json:"stays"` // until it is cleared
}

// seen is an event that is counted for a day.
type seen struct {
	Code  int       `json:"code"`
	Count int       `json:"count"`
	At    time.Time `json:"at"`
}

// Track is what is known of one GPU. The zero Track knows nothing. It can be stored as
// JSON.
type Track struct {
	State  State       `json:"state"`
	Since  time.Time   `json:"since"` // when it came into its state
	Faults []Fault     `json:"faults,omitempty"`
	Events []seen      `json:"events,omitempty"`
	Slow   []time.Time `json:"slow,omitempty"` // looks at which it was slowed down
	Missed int         `json:"missed,omitempty"`
}

// Evidence returns the faults that count, the worst first.
func (t Track) Evidence() []Fault {
	all := slices.DeleteFunc(slices.Clone(t.Faults), func(f Fault) bool { return !f.Sure })
	slices.SortStableFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(severity[b.Level], severity[a.Level]), a.First.Compare(b.First))
	})
	return all
}

// Next returns the track after a look. The receiver is not changed.
func (t Track) Next(r Reading, p Policy, now time.Time) Track {
	p = p.withDefaults()
	t.Missed = 0
	t = t.remember(r, p, now)
	t.Faults = mergeFaults(t.Faults, append(directFaults(r), t.counted(r, p, now)...), p, now)
	return t.settle(now)
}

// Miss returns the track after a look that failed. What was unhealthy stays so.
func (t Track) Miss(p Policy, now time.Time) Track {
	p = p.withDefaults()
	if t.Missed++; t.Missed >= p.MissedLooks && t.State != Unhealthy {
		return t.enter(Unknown, now)
	}
	if t.State == "" {
		return t.enter(Unknown, now)
	}
	return t
}

// Clear returns the track without all that spoke against the GPU: it was reset, or an
// operator says so. The next look says how it is.
func (t Track) Clear(now time.Time) Track { return Track{}.enter(Unknown, now) }

// remember notes what is counted over time, and forgets what is too long ago.
func (t Track) remember(r Reading, p Policy, now time.Time) Track {
	t.Events = slices.DeleteFunc(slices.Clone(t.Events), func(e seen) bool { return now.Sub(e.At) > day })
	for _, x := range r.XIDs {
		if d := p.Decide(x.Code); (d == AppFault || d == Count) && !x.Shared {
			t.Events = append(t.Events, seen{x.Code, max(x.Count, 1), now})
		}
	}
	t.Events = t.Events[max(0, len(t.Events)-mostEvents):]
	t.Slow = slices.DeleteFunc(slices.Clone(t.Slow), func(at time.Time) bool { return now.Sub(at) > slowWindow })
	if r.Slowdown {
		t.Slow = append(t.Slow, now)
	}
	t.Slow = t.Slow[max(0, len(t.Slow)-mostSlow):]
	return t
}

// directFaults are those that a reading says by itself.
func directFaults(r Reading) []Fault {
	var all []Fault
	if r.Lost {
		all = append(all, Fault{Rule: RuleLost, Level: Unhealthy, Sure: true,
			Detail: "the GPU was there when the daemon began, and the driver does not find it any more"})
	}
	if r.Recovery != "" && r.Recovery != "none" {
		all = append(all, Fault{Rule: RuleRecovery, Level: Unhealthy, Sure: true,
			Detail: "the driver asks for this recovery action: " + r.Recovery})
	}
	if r.BurnIn != "" {
		all = append(all, Fault{Rule: RuleBurnIn, Level: Unhealthy, Sure: true,
			Detail: "two tests of its memory failed: " + r.BurnIn})
	}
	if r.RemapFailed {
		all = append(all, Fault{Rule: RuleRemapFailed, Level: Unhealthy,
			Detail: "a row of its memory could not be remapped: replace the GPU"})
	}
	if r.RemapPending {
		all = append(all, Fault{Rule: RuleRemapPending, Level: Degraded,
			Detail: "a row of its memory is remapped at the next reset: reset it before it is handed over"})
	}
	return all
}

// counted are the faults of events, and of what comes too often.
func (t Track) counted(r Reading, p Policy, now time.Time) []Fault {
	var all []Fault
	for _, x := range r.XIDs {
		if f, ok := xidFault(x, p); ok {
			all = append(all, f)
		}
	}
	repeats, rate := map[int]int{}, 0
	for _, e := range t.Events {
		switch p.Decide(e.Code) {
		case AppFault:
			repeats[e.Code] += e.Count
		case Count:
			if now.Sub(e.At) <= time.Hour {
				rate += e.Count
			}
		}
	}
	for _, x := range r.XIDs { // only what has come now is news
		if n := repeats[x.Code]; n >= 2 && slices.Contains(suspiciousRepeats, x.Code) && !x.Shared {
			all = append(all, Fault{Rule: xidRule(x.Code), Level: Degraded,
				Detail: fmt.Sprintf("XID %d came %d times in 24 h on this GPU alone", x.Code, n)})
		}
	}
	if rate >= p.XIDsPerHour {
		all = append(all, Fault{Rule: RuleXIDRate, Level: Degraded,
			Detail: fmt.Sprintf("%d XIDs in an hour that mean little alone", rate)})
	}
	if n := len(t.Slow); n >= p.SlowLooks {
		all = append(all, Fault{Rule: RuleSlowdown, Level: Unhealthy,
			Detail: fmt.Sprintf("the hardware slowed it down in %d looks within 10 minutes", n)})
	}
	return all
}

// mergeFaults brings what is found now together with what was found before.
func mergeFaults(before, found []Fault, p Policy, now time.Time) []Fault {
	var all []Fault
	for _, f := range before {
		i := slices.IndexFunc(found, func(x Fault) bool { return x.Rule == f.Rule })
		switch {
		case i >= 0:
			x := found[i]
			x.First, x.Last = f.First, now
			x.Sure = f.Sure || x.Sure || x.Level == Degraded || now.Sub(f.First) >= p.AgreeAfter
			x.Stays = f.Stays || x.Stays || x.Sure && x.Level == Unhealthy
			found = slices.Delete(found, i, i+1)
			all = append(all, x)
		case f.Stays: // an event that nothing has mended since is found by every look
			f.Sure = f.Sure || now.Sub(f.First) >= p.AgreeAfter
			all = append(all, f)
		case f.Level == Degraded && now.Sub(f.Last) < p.QuietFor:
			all = append(all, f)
		}
	}
	for _, x := range found {
		if slices.ContainsFunc(all, func(f Fault) bool { return f.Rule == x.Rule }) {
			continue
		}
		x.First, x.Last = now, now
		x.Sure = x.Sure || x.Level == Degraded
		x.Stays = x.Stays || x.Sure && x.Level == Unhealthy
		all = append(all, x)
	}
	return all[max(0, len(all)-mostFaults):]
}

// settle enters the state that the faults lead to. A suspicion alone leaves it as it is, but
// for one that was degraded by what has been quiet for long enough: nothing speaks for that any
// more.
func (t Track) settle(now time.Time) Track {
	to, suspicion := Healthy, false
	for _, f := range t.Faults {
		if f.Sure && f.Level.Worse(to) {
			to = f.Level
		}
		suspicion = suspicion || !f.Sure
	}
	if to == Healthy && suspicion && t.State != Degraded {
		to = cmp.Or(t.State, Unknown)
	}
	return t.enter(to, now)
}

func (t Track) enter(s State, now time.Time) Track {
	if t.State != s {
		t.State, t.Since = s, now
	}
	return t
}

// MarkShared returns the readings of a node's GPUs, by any key, with those XIDs marked
// as shared that blame software and came on several GPUs in one look.
func MarkShared[K comparable](all map[K]Reading, p Policy) map[K]Reading {
	p = p.withDefaults()
	on := map[int]int{}
	for _, r := range all {
		codes := map[int]bool{}
		for _, x := range r.XIDs {
			codes[x.Code] = true
		}
		for code := range codes {
			on[code]++
		}
	}
	out := make(map[K]Reading, len(all))
	for k, r := range all {
		r.XIDs = slices.Clone(r.XIDs)
		for i, x := range r.XIDs {
			r.XIDs[i].Shared = on[x.Code] > 1 && p.Decide(x.Code) == AppFault
		}
		out[k] = r
	}
	return out
}
