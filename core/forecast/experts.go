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
	boot    float64          // seconds of the model's clock, and
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
	At     int64           `json:"at"` // counted up to this second
	Fleets [experts]shadow `json:"fleets"`
	Means  [2][2]float32   `json:"means"` // mean and variance of the demand
	Queue  queue           `json:"queue"`
	Leader int             `json:"leader"` // the expert that has cost the least
	Since  int64           `json:"since"`  // when it became that
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
		t.shadows = append(t.shadows, s)
	}
	return s
}

// Hold decides as Outlook.HoldAtMost does of an outlook that was made at now, but by the rule that has cost the least
// lately, or between such rules.
func (s *Shadows) Hold(now int64, o *Outlook, p Prices, held, most int) Held {
	x, clock := s.experts, o.clockRate()
	now = max(now*s.tenant.fleet.pace, s.tenant.past.Last)
	s.passTo(now)
	x.boot, x.worth = p.Boot*clock, p.WaitWorth
	curves := o.curvesOf(p)
	var wants [experts]int
	for i := range wants {
		f := &s.state.Fleets[i]
		wants[i] = s.wantsOf(i, o, &curves, held, most)
		kept := max(0, int(f.Units+f.booting())-o.Demand)
		f.follow(int32(o.Demand+s.wantsOf(i, o, &curves, kept, most)), int32(o.Demand), float32(x.boot))
	}
	h := o.heldAt(p, &curves.keep[own], s.choose(now, &wants), held)
	h.Rule, h.Better = s.ruleName(s.state.Leader), float64(now-s.state.Since)/clock
	return h
}

// Bytes returns how much memory is kept of the class from look to look.
func (s *Shadows) Bytes() int {
	return sizeOf(s.state) + queueLength*sizeOf(arrived{})
}

// passTo counts what time up to now has cost.
func (s *Shadows) passTo(now int64) {
	x, st := s.experts, &s.state
	demand := int32(s.tenant.past.Demand)
	if st.At == 0 { // whatever runs has its units
		st.At, st.Since = now, now
		for i := range st.Fleets {
			st.Fleets[i].Units = demand
		}
	}
	d := now - st.At
	if d <= 0 {
		return
	}
	x.fadeTo(now)
	fade := exp2(-float64(d) / costLife)
	for i := range st.Fleets {
		f := &st.Fleets[i]
		f.Cost = float32(float64(f.Cost) * fade)
		s.charge(i, f.pass(float32(d), demand, x.worth, &st.Queue))
	}
	for i, h := range meanLives {
		m, keep := &st.Means[i], float32(exp2(-float64(d)/h))
		e := float32(demand) - m[0]
		m[0] += (1 - keep) * e
		m[1] = keep * (m[1] + (1-keep)*e*e)
	}
	st.At = now
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

// submit counts an arrival, before the demand rises by it.
func (s *Shadows) submit(at int64, gpus int32) {
	s.passTo(at)
	s.state.Queue.add(at, gpus)
}

// end counts the end of a job, before the demand falls by it.
func (s *Shadows) end(at, submitted int64, gpus int32) {
	s.passTo(at)
	demand, q := int32(s.tenant.past.Demand), &s.state.Queue
	for i := range s.state.Fleets {
		s.charge(i, s.state.Fleets[i].orphan(submitted, demand, s.experts.worth, q))
	}
	q.remove(submitted, gpus)
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
		weight := exp2(-sharpness * math.Log2E * (score[i]/score[best] - 1))
		sum += weight * float64(w)
		weights += weight
	}
	if best != s.state.Leader {
		s.state.Leader, s.state.Since = best, now
	}
	return int(sum/weights + 0.5)
}
