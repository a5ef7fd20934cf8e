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
	learned float64                   // examples
	at      [places + ofHazard]uint32 // places of the features of one bin

	hazardPrior float64 // the part that is left of what the hazard begins with, from 1 down
}

// places is how many features of one bin are looked up, and ofHazard how many more for the hazard alone.
const (
	places   = 41
	ofHazard = 2
)

func newCrossFeatures(rate float64) *crossFeatures {
	return &crossFeatures{weights: make([]float32, slot<<tableBits), squares: make([]float32, slot<<tableBits),
		rate: float32(rate), hazardPrior: 1}
}

// coarseLog cuts a binary logarithm into two steps a doubling.
func coarseLog(x float32) int { return int(float64(x)*2+lowest) - lowest + 40 }

// lowest is what keeps coarseLog from rounding a number below zero up.
const lowest = 4096

// placeOf hashes feature number id, made of values, to its place in the table.
func placeOf(id, a, b, d int) uint32 {
	h := uint64(id+1)*0x9e3779b97f4a7c15 + 0x1234567
	h = (h ^ uint64(a+77)) * 0xff51afd7ed558ccd
	h = ((h ^ h>>32) ^ uint64(b+77)) * 0xff51afd7ed558ccd
	h = ((h ^ h>>32) ^ uint64(d+77)) * 0xff51afd7ed558ccd
	h = (h ^ h>>32) * 0xc4ceb9fe1a85ec53
	return uint32(h>>(64-tableBits)) * slot
}

// findFeatures looks up the features of one bin of one tenant: values alone, in pairs and triples, and as against the
// tenant. A feature's number is written out, so that it is hashed when the program is built.
func (c *crossFeatures) findFeatures(l *features, bin, tenant int) {
	at, t, b := &c.at, &l.tenant, &l.bin[bin]
	age, since, ended := coarseLog(b[0]), coarseLog(t[2]), coarseLog(b[7])
	r1, r5, r30, r2h, r12h, r7d := coarseLog(b[1]), coarseLog(b[2]), coarseLog(b[3]), coarseLog(b[4]),
		coarseLog(b[5]), coarseLog(b[6])
	size, demand, jobs := coarseLog(t[1]/2), coarseLog(t[0]/2), coarseLog(t[6])
	s0, s1, s2, s3 := coarseLog(b[15]), coarseLog(b[16]), coarseLog(b[17]), coarseLog(b[18])

	at[0] = placeOf(0, 0, bin, 0)
	at[1] = placeOf(1, age, bin, 0)
	at[2] = placeOf(2, r5, bin, 0)
	at[3] = placeOf(3, r30, bin, 0)
	at[4] = placeOf(4, r2h, bin, 0)
	at[5] = placeOf(5, r12h, bin, 0)
	at[6] = placeOf(6, r7d, bin, 0)
	at[7] = placeOf(7, since, bin, 0)
	at[8] = placeOf(8, size, bin, 0)
	at[9] = placeOf(9, demand, bin, 0)
	at[10] = placeOf(10, ended, bin, 0)
	at[11] = placeOf(11, s0, bin, 0)
	at[12] = placeOf(12, s1, bin, 0)
	at[13] = placeOf(13, s2, bin, 0)
	at[14] = placeOf(14, s3, bin, 0)

	at[15] = placeOf(15, age, r30, 0)
	at[16] = placeOf(16, r1, r30, 0)
	at[17] = placeOf(17, since, r30, 0)
	at[18] = placeOf(18, age, since, 0)
	at[19] = placeOf(19, jobs, r30, 0)
	at[20] = placeOf(20, r30, r12h, 0)
	at[21] = placeOf(21, age, r5, bin)
	at[22] = placeOf(22, demand, age, 0)
	at[23] = placeOf(23, ended, r5, 0)
	at[24] = placeOf(24, s0, s2, 0)
	at[25] = placeOf(25, s1, since, 0)
	at[26] = placeOf(26, s2, age, 0)
	at[27] = placeOf(27, s3, r30, 0)
	at[28] = placeOf(28, coarseLog(t[32]), coarseLog(t[31]), since/2)
	at[29] = placeOf(29, coarseLog(t[33]), coarseLog(t[16]), 0)
	at[30] = placeOf(30, coarseLog(t[18])/2, coarseLog(t[20])/2, coarseLog(t[3])/2)

	at[31] = placeOf(31, bin, tenant, 1)
	at[32] = placeOf(32, age, tenant, 1)
	at[33] = placeOf(33, r30, tenant, 1)
	at[34] = placeOf(34, since, tenant, 1)
	at[35] = placeOf(35, r5, tenant, 1)
	c.findClock(&l.clock, bin, tenant)

	// For the hazard alone: how many jobs come in this hour of the week, and how many as against others. The network
	// sees this, too, and the hazard has none. In the chances they would cost philly a percent.
	at[41] = placeOf(41, coarseLog(t[28]+t[30]), bin, 0)
	at[42] = placeOf(42, coarseLog(t[28]), tenant, 0)
}

// findClock looks up what depends on the time of the hour and of the day.
func (c *crossFeatures) findClock(k *clock, bin, tenant int) {
	at, level := &c.at, firstLevel[bin]
	d, h := 0, 0
	for i := range k.day {
		d, h = 8*d+lagOf(k.day[i], level), 8*h+lagOf(k.hourAgo[i], level)
	}
	at[36] = placeOf(36, 3*k.slot+k.phase, tenant, bin)
	at[37] = placeOf(37, 24*bin+k.hour, tenant, 0)
	at[38] = placeOf(38, d, h, k.phase)
	at[39] = placeOf(39, d, k.phase, tenant)
	at[40] = placeOf(40, h, k.phase, tenant)
}

// addScores adds the weights of the places found to z: those of the hazard's own places to its log-odds only.
func (c *crossFeatures) addScores(z *[slot]float32) {
	addSlots(z, c.weights, c.at[:places])
	for _, i := range c.at[places:] {
		z[hazardOutput] += c.weights[i+hazardOutput]
	}
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
	var all [slot]float32 // the hazard's place has no error here
	copy(all[:], errors[:])
	stepSlots(c.weights, c.squares, c.at[:places], &all, rate)
}
