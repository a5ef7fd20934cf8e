package main

import "math"

// features is how many features a prediction adds up.
const features = 39

// looks are the values that features are made of, as small whole numbers.
type looks struct {
	age, r5, r30, r2h, r12h, r7d, how, ended int // of a step
	lag1h, lag1d, lag7d                      int
	jobs30, since, size, demand, ended5      int // of a tenant
	hour, weekday, weekend, slot, tenant     int
}

// hashFeatures writes the features of each step.
func (p *past) hashFeatures(now int64, hashes *[steps][features]uint32) {
	minute := now / 60
	p.arrivals[minute%remembered] = p.arrived
	hour := &p.hours[now/3600%hoursOfWeek]
	hour.minutes++
	var x values
	for i := range p.decayed {
		x[i] = log2(p.decayed[i].decayTo(now))
	}
	x[5] = log2(10 * hour.gpus / hour.minutes)
	x[6] = log2(p.ended.decayTo(now))
	x[7], x[8], x[9] = log2(p.arrivalsInLag(minute, hourLag)), log2(p.arrivalsInLag(minute, dayLag)),
		log2(p.arrivalsInLag(minute, weekLag))
	l := p.tenantLooks(now)
	l.ended5 = logBucket(x[6])
	for j := range hashes {
		p.stepLooks(now, j, &x, &l)
		l.hashStep(j, &hashes[j])
	}
}

// values are logarithms of counts, before they are divided by the step.
type values [10]float64

func log2(x float64) float64 {
	if x <= 0 {
		return math.Inf(-1)
	}
	return math.Log2(x)
}

func (p *past) tenantLooks(now int64) looks {
	day := now / 86400
	weekday := int((day + 4) % 7) // the first day of Unix time was a Thursday
	weekend := 0
	if weekday == 0 || weekday == 6 {
		weekend = 1
	}
	return looks{
		jobs30: logBucket(log2(p.jobs.decayTo(now))), since: octaveOf(float64(now-p.last) / 60), size: octaveOf(p.size),
		demand: octaveOf(float64(p.demand)), hour: int(now / 3600 % 24), weekday: weekday,
		weekend: weekend, slot: int(now / 300 % 12), tenant: p.tenant,
	}
}

// logGrid are the logarithms of grid.
var logGrid = func() (l [steps]float64) {
	for i, j := range grid {
		l[i] = math.Log2(float64(j))
	}
	return l
}()

// never is the age of a level that was never active.
const never = 63

func (p *past) stepLooks(now int64, j int, x *values, l *looks) {
	l.age = never
	if level := p.demand + grid[j] - 1; level < len(p.active) && p.active[level] != math.MinInt64 {
		l.age = logBucket(math.Log2(float64(now-p.active[level])/60 + 0.5))
	}
	b := func(i int) int { return logBucket(x[i] - logGrid[j]) }
	l.r5, l.r30, l.r2h, l.r12h, l.r7d = b(0), b(1), b(2), b(3), b(4)
	l.how, l.ended, l.lag1h, l.lag1d, l.lag7d = b(5), b(6), b(7), b(8), b(9)
}

// logBucket counts half octaves of a number, given its logarithm, from 1 on; 0 is
// for nothing.
func logBucket(log2 float64) int {
	if math.IsInf(log2, -1) {
		return 0
	}
	return 1 + max(0, int(math.Floor(2*log2+12)))
}

// octaveOf counts octaves.
func octaveOf(x float64) int {
	if x <= 0 {
		return 0
	}
	return 1 + int(math.Floor(math.Log2(x)))
}

// hashStep writes the features of one step: what is seen, alone and in pairs.
func (l *looks) hashStep(j int, out *[features]uint32) {
	h := hasher{out: out}
	h.addFeature(0, 0, 0)
	h.addFeature(j, 0, 0)
	for _, v := range [...]int{l.age, l.r5, l.r30, l.r2h, l.r12h, l.r7d, l.how, l.since, l.size, l.demand, l.lag1h,
		l.lag1d, l.lag7d, l.ended} {
		h.addFeature(v, j, 0)
	}
	h.addFeature(l.hour, l.weekend, 0)
	h.addFeature(l.age, l.r30, 0)
	h.addFeature(l.r5, l.r2h, 0)
	h.addFeature(l.since, l.r30, 0)
	h.addFeature(l.age, l.since, 0)
	h.addFeature(l.jobs30, l.r30, 0)
	h.addFeature(l.r30, l.r12h, 0)
	h.addFeature(l.age, l.r5, j)
	h.addFeature(l.demand, l.age, 0)
	h.addFeature(l.lag1h, l.lag1d, 0)
	h.addFeature(l.lag1d, l.lag7d, j)
	h.addFeature(l.ended5, l.r5, 0)
	for _, v := range [...]int{j, l.age, l.r30, l.hour, l.since, l.weekday, l.r5, l.how, l.slot, l.lag1h, l.lag1d} {
		h.addFeature(l.tenant, v, 0)
	}
}

// hasher numbers features in the order in which they are added.
type hasher struct {
	out *[features]uint32
	n   int
}

func (h *hasher) addFeature(a, b, c int) {
	x := uint64(h.n)<<48 ^ uint64(uint16(a))<<32 ^ uint64(uint16(b))<<16 ^ uint64(uint16(c))
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	h.out[h.n] = uint32(x >> (64 - tableBits))
	h.n++
}
