package forecast

import "math"

// tableBits is the size of the hashed table: this many bits of a hash.
const tableBits = 16

// slot is how many numbers a place of the table has: the outputs, and one to
// spare so that a place is half a cache line.
const slot = 8

// crossFeatures is a linear model of the outputs over pairs and triples of coarse
// features, hashed into one table (Weinberger et al., "Feature Hashing for Large
// Scale Multitask Learning", ICML 2009). It learns by heart what the network
// only sees the outline of: what is usual for one tenant.
type crossFeatures struct {
	weights []float32
	squares []float32
	rate    float32
	learned float64        // examples
	at      [places]uint32 // places of the features of one bin
	id      int            // how many were found
}

// places is how many features of one bin are looked up.
const places = 41

func newCrossFeatures(rate float64) *crossFeatures {
	return &crossFeatures{weights: make([]float32, slot<<tableBits), squares: make([]float32, slot<<tableBits),
		rate: float32(rate)}
}

// coarseLog cuts a binary logarithm into two steps a doubling.
func coarseLog(x float32) int { return int(float64(x)*2+lowest) - lowest + 40 }

// lowest is what keeps coarseLog from rounding a number below zero up.
const lowest = 4096

// addFeature hashes one feature made of values.
func (c *crossFeatures) addFeature(a, b, d int) {
	h := uint64(c.id+1)*0x9e3779b97f4a7c15 + 0x1234567
	h = (h ^ uint64(a+77)) * 0xff51afd7ed558ccd
	h = ((h ^ h>>32) ^ uint64(b+77)) * 0xff51afd7ed558ccd
	h = ((h ^ h>>32) ^ uint64(d+77)) * 0xff51afd7ed558ccd
	h = (h ^ h>>32) * 0xc4ceb9fe1a85ec53
	c.at[c.id] = uint32(h>>(64-tableBits)) * slot
	c.id++
}

// findFeatures looks up the features of one bin of one tenant.
func (c *crossFeatures) findFeatures(l *features, bin, tenant int) {
	c.id = 0
	t, b := &l.tenant, &l.bin[bin]
	age, since, ended := coarseLog(b[0]), coarseLog(t[2]), coarseLog(b[7])
	r1, r5, r30, r2h, r12h, r7d := coarseLog(b[1]), coarseLog(b[2]), coarseLog(b[3]), coarseLog(b[4]),
		coarseLog(b[5]), coarseLog(b[6])
	demand, jobs := coarseLog(t[0]/2), coarseLog(t[6])
	s0, s1, s2, s3 := coarseLog(b[15]), coarseLog(b[16]), coarseLog(b[17]), coarseLog(b[18])
	for _, x := range [...]int{0, age, r5, r30, r2h, r12h, r7d, since, coarseLog(t[1] / 2), demand, ended, s0, s1, s2,
		s3} {
		c.addFeature(x, bin, 0)
	}
	for _, x := range [...][3]int{
		{age, r30, 0}, {r1, r30, 0}, {since, r30, 0}, {age, since, 0}, {jobs, r30, 0}, {r30, r12h, 0}, {age, r5, bin},
		{demand, age, 0}, {ended, r5, 0},
		{s0, s2, 0}, {s1, since, 0}, {s2, age, 0}, {s3, r30, 0},
		{coarseLog(t[32]), coarseLog(t[31]), since / 2}, {coarseLog(t[33]), coarseLog(t[16]), 0},
		{coarseLog(t[18]) / 2, coarseLog(t[20]) / 2, coarseLog(t[3]) / 2},
	} {
		c.addFeature(x[0], x[1], x[2])
	}
	for _, x := range [...]int{bin, age, r30, since, r5} {
		c.addFeature(x, tenant, 1)
	}
	c.findClock(&l.clock, bin, tenant)
}

// findClock looks up what depends on the time of the hour and of the day.
func (c *crossFeatures) findClock(k *clock, bin, tenant int) {
	level := firstLevel[bin]
	d, h := 0, 0
	for i := range k.day {
		d, h = 8*d+lagOf(k.day[i], level), 8*h+lagOf(k.hourAgo[i], level)
	}
	c.addFeature(3*k.slot+k.phase, tenant, bin)
	c.addFeature(24*bin+k.hour, tenant, 0)
	c.addFeature(d, h, k.phase)
	c.addFeature(d, k.phase, tenant)
	c.addFeature(h, k.phase, tenant)
}

// addScores adds the weights of the places found to z, and returns the log-odds of the hazard there.
func (c *crossFeatures) addScores(z *[outputs]float32) (hazard float32) {
	hazard = hazardOffset
	for _, i := range c.at {
		w := (*[slot]float32)(c.weights[i:])
		z[0] += w[0]
		z[1] += w[1]
		z[2] += w[2]
		z[3] += w[3]
		z[4] += w[4]
		z[5] += w[5]
		z[6] += w[6]
		hazard += w[hazardOutput]
	}
	return hazard
}

// The first steps are larger, by a part that fades with every example: who has
// little history learns it quickly, and who has much is not shaken by it.
const (
	eager    = 4
	eagerFor = 1000 // examples
)

// learnFromErrors takes a step against the errors at the places found.
func (c *crossFeatures) learnFromErrors(errors *[outputs]float32) {
	rate := c.rate * float32(1+eager*math.Exp(-c.learned/eagerFor))
	c.learned++
	for _, i := range c.at {
		w, s := (*[slot]float32)(c.weights[i:]), (*[slot]float32)(c.squares[i:])
		for k, e := range errors {
			square := s[k] + e*e
			s[k] = square
			w[k] -= rate * e / float32(math.Sqrt(float64(square+1e-3)))
		}
	}
}
