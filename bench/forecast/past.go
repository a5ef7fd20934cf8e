package main

import "math"

// The half-lives of decayed arrivals, in minutes.
var halfLives = [...]float64{5, 30, 120, 720, 10080}

const (
	hourLag, dayLag, weekLag = 60, 24 * 60, 7 * 24 * 60 // minutes
	remembered               = weekLag + 1
)

// past is what the hazard model sees of one tenant.
type past struct {
	tenant   int
	window   int64 // seconds
	demand   int
	active   []int64 // when each level above the demand was last active, by level
	decayed  [len(halfLives)]decay
	jobs     decay // arrivals of jobs
	ended    decay // GPUs of jobs that ended
	last     int64 // arrival
	size     float64
	hours    [hoursOfWeek]struct{ gpus, minutes float64 }
	arrived  int
	arrivals [remembered]int // in all until each minute, modulo
}

func newPast(tenant int, window int64) *past {
	p := &past{tenant: tenant, window: window, jobs: decay{halfLife: 30}, ended: decay{halfLife: 5}}
	for i, h := range halfLives {
		p.decayed[i].halfLife = h
	}
	return p
}

// decay is a sum of which half is gone after a half-life in minutes.
type decay struct {
	halfLife float64
	at       int64
	sum      float64
}

func (d *decay) decayTo(now int64) float64 {
	if now > d.at {
		d.sum *= math.Exp2(-float64(now-d.at) / 60 / d.halfLife)
		d.at = now
	}
	return d.sum
}

func (d *decay) addAt(now int64, x float64) {
	d.decayTo(now)
	d.sum += x
}

func (p *past) countArrival(now int64, gpus int) {
	for len(p.active) < p.demand+gpus+grid[steps-1] {
		p.active = append(p.active, math.MinInt64)
	}
	p.demand += gpus
	p.arrived += gpus
	for i := range p.decayed {
		p.decayed[i].addAt(now, float64(gpus))
	}
	p.jobs.addAt(now, 1)
	p.hours[now/3600%hoursOfWeek].gpus += float64(gpus)
	if p.size == 0 {
		p.size = float64(gpus)
	}
	p.size += 0.05 * (float64(gpus) - p.size)
	p.last = now
}

func (p *past) countEnd(now int64, gpus int) {
	p.demand -= gpus
	for k := p.demand; k < p.demand+gpus; k++ {
		p.active[k] = now
	}
	p.ended.addAt(now, float64(gpus))
}

// arrivalsInLag returns the arrivals within a window that began some minutes ago.
func (p *past) arrivalsInLag(minute int64, ago int64) float64 {
	from := minute - ago + remembered // which is the same place, and not negative
	return float64(p.arrivals[(from+p.window/60)%remembered] - p.arrivals[from%remembered])
}
