package telemetry

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/contract"
)

const (
	// bucketLength is how much time one bucket is of.
	bucketLength = 5 * time.Minute
	// bucketsKept are a day.
	bucketsKept = 288
)

// bucket is what was told of a GPU in five minutes. It takes 12 bytes, and the day of a GPU 4 KiB as Go allocates: that
// of 10,000 GPUs takes 41 MB of the process that they report to.
type bucket struct {
	memoryMiB, watts float32 // means; negative: not told
	celsius          int16   // the highest; untoldCelsius: not told
	percent, most    uint8   // mean and highest utilization; untoldPercent: not told
}

const (
	untoldCelsius = math.MinInt16
	untoldPercent = math.MaxUint8
)

// untold is a bucket in which nothing came.
var untold = bucket{memoryMiB: -1, watts: -1, celsius: untoldCelsius, percent: untoldPercent, most: untoldPercent}

// mean is that of what was added.
type mean struct{ sum, count float64 }

func (m *mean) add(x float64) float64 {
	m.sum += x
	m.count++
	return m.sum / m.count
}

// ring is the last day of a GPU. Buckets are numbered from 1970 on.
type ring struct {
	buckets        [bucketsKept]bucket // each at its number modulo bucketsKept
	oldest, newest int64               // the first that was ever told, and the one that is added to
	// The means of the newest.
	percent, memoryMiB, watts mean
}

// newRing returns a ring in which nothing came before now.
func newRing(now time.Time) *ring {
	r := &ring{oldest: numberOf(now), newest: numberOf(now)}
	for i := range r.buckets {
		r.buckets[i] = untold
	}
	return r
}

// numberOf is the number of the bucket that a time is in.
func numberOf(t time.Time) int64 { return t.Unix() / int64(bucketLength/time.Second) }

// startOf is when a bucket begins.
func startOf(number int64) time.Time {
	return time.Unix(number*int64(bucketLength/time.Second), 0).UTC()
}

// numberFrom is the number of the first bucket that begins at a time or later.
func numberFrom(t time.Time) int64 {
	if n := numberOf(t); startOf(n).Equal(t) {
		return n
	}
	return numberOf(t) + 1
}

func (r *ring) at(number int64) *bucket { return &r.buckets[number%bucketsKept] }

// add adds what a GPU's counters say at a time. What was not read is not added.
func (r *ring) add(g contract.GPUTelemetry, now time.Time) {
	r.turnTo(numberOf(now))
	b := r.at(r.newest)
	if g.Utilization != nil {
		percent := min(max(*g.Utilization, 0), 100)
		b.percent = uint8(math.Round(r.percent.add(float64(percent))))
		if b.most == untoldPercent || percent > int(b.most) {
			b.most = uint8(percent) //nolint:gosec // at most 100
		}
	}
	if g.MemoryUsedMiB != nil {
		b.memoryMiB = float32(r.memoryMiB.add(float64(max(*g.MemoryUsedMiB, 0))))
	}
	if g.Temperature != nil {
		b.celsius = max(b.celsius, int16(min(max(*g.Temperature, -1000), 1000))) //nolint:gosec // it is within these
	}
	if g.Power != nil {
		b.watts = float32(r.watts.add(max(*g.Power, 0)))
	}
}

// turnTo begins the bucket of a number, unless it is the newest. A clock that goes back by a little goes on in the
// newest; what a clock had reached that is set back further was not the past, and is forgotten.
func (r *ring) turnTo(number int64) {
	if number == r.newest || number == r.newest-1 {
		return
	}
	first, last := min(number, r.newest+1), max(number, r.newest)
	for n := max(first, last-bucketsKept+1); n <= last; n++ {
		*r.at(n) = untold
	}
	r.oldest, r.newest = min(r.oldest, number), number
	r.percent, r.memoryMiB, r.watts = mean{}, mean{}, mean{}
}

// read copies the buckets of the last day from one number on to that of now, and returns the number of the first, which
// is not before anything was told, and whether something came in each. The bucket of now is among them once something
// came in it.
func (r *ring) read(from int64, now time.Time) (copied []bucket, first int64, whole bool) {
	last := numberOf(now)
	from = max(from, last-bucketsKept+1)
	first, whole = max(from, r.oldest), from >= r.oldest
	for n := first; n <= last; n++ {
		b := untold
		if n <= r.newest && n > r.newest-bucketsKept {
			b = *r.at(n)
		}
		if b == untold && n == last {
			break
		}
		whole = whole && b != untold
		copied = append(copied, b)
	}
	return copied, first, whole
}

// steps merges buckets, of which the first has a number, into steps of so many each. Buckets count alike in a step, but
// for those in which nothing came.
func steps(all []bucket, first, each int64) []contract.GPUHistoryStep {
	out := []contract.GPUHistoryStep{}
	var of stepMeans
	for i, b := range all {
		number := first + int64(i)
		if i == 0 || number%each == 0 {
			out = append(out, contract.GPUHistoryStep{Start: startOf(number - number%each)})
			of = stepMeans{}
		}
		of.addTo(&out[len(out)-1], b)
	}
	return out
}

// stepMeans are the means of a step.
type stepMeans struct{ percent, memoryMiB, watts mean }

func (m *stepMeans) addTo(s *contract.GPUHistoryStep, b bucket) {
	if b.percent != untoldPercent {
		s.UtilizationMean = new(int(math.Round(m.percent.add(float64(b.percent)))))
		s.UtilizationMax = highest(s.UtilizationMax, int(b.most))
	}
	if b.memoryMiB >= 0 {
		s.MemoryUsedMiBMean = new(int(math.Round(m.memoryMiB.add(float64(b.memoryMiB)))))
	}
	if b.celsius != untoldCelsius {
		s.TemperatureMax = highest(s.TemperatureMax, int(b.celsius))
	}
	if b.watts >= 0 {
		s.PowerMean = new(math.Round(10*m.watts.add(float64(b.watts))) / 10)
	}
}

// highest is the higher of two, of which the first may be missing.
func highest(x *int, y int) *int {
	if x != nil && *x >= y {
		return x
	}
	return &y
}
