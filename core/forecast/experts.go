package forecast

import "math"

// What a choice follows from. Costs fade, so that a change of habit is followed. A class leans on what the experts cost
// in the whole fleet for as many boots, and the fleet on what is usual for. Only experts that cost hardly more than the
// cheapest one have a say. Found on synthetic regimes; half and twice of each cost at most a percent more there.
const (
	costLife   = 4 * 86400 // seconds after which a cost counts half
	leanBoots  = 20
	usualBoots = 3
	sharpness  = 200
)

// Experts runs rules of holding beside each other, in shadow, for the classes of an OnlineModel at one set of prices,
// so that what is held follows what has cost the least (prediction with expert advice: Herbster and Warmuth, "Tracking
// the Best Expert", Machine Learning, 1998). It may be stored as JSON. It is not safe for concurrent use.
type Experts struct {
	at      int64            // costs have faded to this second of the model's clock
	boot    float64          // seconds of the model's clock,
	late    float64          // that nearly every boot takes beyond that at most, and
	worth   float64          // the worth of waiting: those of the last decision
	cost    [experts]float64 // of all classes, fading, in GPU-seconds
	classes map[string]*Shadows
}

// NewExperts returns Experts that have seen nothing.
func NewExperts() *Experts { return &Experts{classes: map[string]*Shadows{}} }

// Shadows are the experts of one tenant class, with the fleet that each would have.
type Shadows struct {
	experts *Experts
	tenant  *Tenant
	state   shadowState
}

// shadowState is what is kept of a class, in seconds of the model's clock.
type shadowState struct {
	At      int64           `json:"at"` // counted up to this second, a boot behind
	Fleets  [experts]shadow `json:"fleets"`
	Queue   queue           `json:"queue"`
	Jobs    []runningJob    `json:"jobs,omitempty"`    // in the order of their arrivals
	Changes []change        `json:"changes,omitempty"` // still to be counted, in the order of time,
	Looks   []opinions      `json:"looks,omitempty"`   // and so are these
	Seen    int64           `json:"seen"`              // second to which Means have faded
	Means   [2][2]float32   `json:"means"`             // mean and variance of the demand
	Leader  int             `json:"leader"`            // the expert that has cost the least
	Since   int64           `json:"since"`             // when it became that
}

// Class returns the shadows of a class, which hear of its jobs from now on. There is one for each name of a class.
func (x *Experts) Class(t *Tenant) *Shadows {
	s, ok := x.classes[t.name]
	if !ok {
		s = &Shadows{experts: x, state: shadowState{Leader: own}}
		x.classes[t.name] = s
	}
	if s.tenant != t {
		s.tenant = t
		s.state.takeDemand(int32(t.Demand()))
		t.shadows = append(t.shadows, s)
	}
	return s
}

// takeDemand lets fleets that have seen nothing, or were stored without a demand, begin with one.
func (st *shadowState) takeDemand(demand int32) {
	for i := range st.Fleets {
		if st.At == 0 || st.Fleets[i].Demand == unknown {
			st.Fleets[i].Demand = demand
		}
	}
}

// Hold decides as Outlook.HoldAtMost does of an outlook that was made at now, but by the rule that has cost the least
// lately, or between such rules.
func (s *Shadows) Hold(now int64, o *Outlook, p Prices, held, most int) Held {
	x, clock := s.experts, o.clockRate()
	now = max(now*s.tenant.fleet.pace, s.tenant.past.Last)
	x.boot, x.late, x.worth = p.Boot*clock, p.Late*clock, p.WaitWorth
	s.passMeansTo(now)
	curves := o.curvesOf(p)
	var wants [experts]int
	more := min(most, o.worthAwaiting(p))
	beside, room := max(0, held-more), most-more
	forecast := curves.wanted(beside, room)
	for i := range wants {
		if wants[i] = s.wantsOf(i, &forecast, beside, room); i != nothing {
			wants[i] += more
		}
	}
	s.state.Looks = append(s.state.Looks, s.opinionsOf(o, &curves, room, int16(more)))
	s.catchUp(now)
	levels := s.choose(now, &wants)
	more = min(more, levels)
	h := o.heldAt(p, &curves.keep[own], levels-more, more, held)
	h.Rule, h.Better = s.ruleName(s.state.Leader), float64(now-s.state.Since)/clock
	return h
}

// Bytes returns how much memory is kept of the class from look to look, without jobs that run, of which each takes 24
// bytes, and what is still to be counted.
func (s *Shadows) Bytes() int {
	return sizeOf(s.state) + queueLength*sizeOf(arrived{})
}

// passTo counts what time has cost up to a second, if it is later.
func (s *Shadows) passTo(second int64) {
	x, st := s.experts, &s.state
	d := second - st.At
	if d <= 0 {
		return
	}
	x.fadeTo(second)
	fade := exp2(-float64(d) / costLife)
	for i := range st.Fleets {
		f := &st.Fleets[i]
		f.Cost = float32(float64(f.Cost) * fade)
		s.charge(i, f.pass(float32(d), x.worth, &st.Queue))
	}
	st.At = second
}

// passMeansTo lets the moving means follow the demand.
func (s *Shadows) passMeansTo(now int64) {
	st, demand := &s.state, float32(s.tenant.past.Demand)
	if st.Seen > 0 && now > st.Seen {
		for i, h := range meanLives {
			m, keep := &st.Means[i], float32(exp2(-float64(now-st.Seen)/h))
			e := demand - m[0]
			m[0] += (1 - keep) * e
			m[1] = keep * (m[1] + (1-keep)*e*e)
		}
	}
	st.Seen = max(st.Seen, now)
}

func (s *Shadows) charge(expert int, cost float64) {
	s.state.Fleets[expert].Cost += float32(cost)
	s.experts.cost[expert] += cost
}

// fadeTo lets the fleet's costs fade.
func (x *Experts) fadeTo(now int64) {
	if now <= x.at {
		return
	}
	fade := exp2(-float64(now-x.at) / costLife)
	for i := range x.cost {
		x.cost[i] *= fade
	}
	x.at = now
}

// submit notes an arrival, before the demand rises by it.
func (s *Shadows) submit(at int64, gpus int32) {
	s.passMeansTo(at)
	s.state.note(change{At: at, GPUs: gpus})
}

// end notes the end of a job that waited, before the demand falls by it.
func (s *Shadows) end(at, submitted, waited int64, gpus int32) {
	s.passMeansTo(at)
	c := change{At: at, Submitted: submitted, GPUs: -gpus}
	if waited > 0 {
		c.At, c.In = max(at-waited, submitted), whereItDidNotWait
		s.state.note(c)
		c.At, c.In = at, whereItWaited
	}
	s.state.note(c)
}

// choose weighs what the experts want by what they have cost.
func (s *Shadows) choose(now int64, wants *[experts]int) int {
	x := s.experts
	boot := x.boot * (1 + x.worth)
	var fleet, score [experts]float64
	least, best := math.Inf(1), 0
	for i := range fleet {
		fleet[i] = x.cost[i] + usualBoots*boot*usualCost(i)
		least = min(least, fleet[i])
	}
	for i := range score {
		score[i] = float64(s.state.Fleets[i].Cost) + leanBoots*boot*fleet[i]/least
		if score[i] < score[best] {
			best = i
		}
	}
	sum, weights := 0.0, 0.0
	for i, w := range wants {
		weight := math.Exp(-sharpness * (score[i]/score[best] - 1))
		sum += weight * float64(w)
		weights += weight
	}
	if best != s.state.Leader {
		s.state.Leader, s.state.Since = best, now
	}
	return int(sum/weights + 0.5)
}
