package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// crowd is the pool that the figures are about: 1,250 nodes of 8 GPUs, and
// bookings over 30 days, all of one organization.
type crowd struct {
	slots    *calendar.Slots
	profile  calendar.Profile
	vectors  calendar.VectorProfile
	bookings []calendar.Booking
	rng      *rand.Rand
}

func (c *crowd) drawWindow() calendar.Interval {
	start := monday.Add(time.Duration(c.rng.IntN(30*24*60)) * time.Minute)
	return calendar.Interval{Start: start, End: start.Add(time.Duration(30+c.rng.IntN(15*60)) * time.Minute)}
}

func (c *crowd) drawShape() capacity.Shape {
	return capacity.Shape{Nodes: 1 + c.rng.IntN(2)*c.rng.IntN(4), PerNode: 1 << c.rng.IntN(4)}
}

func newCrowd(n int) *crowd {
	c := &crowd{slots: calendar.NewSlots(1250, 8), rng: rand.New(rand.NewPCG(1, uint64(n)))}
	var slots []int
	for len(c.bookings) < n {
		shape, iv, ok := c.drawShape(), c.drawWindow(), false
		if slots, ok = c.slots.FindInto(slots[:0], shape, iv, nil); !ok {
			continue
		}
		b := booking(fmt.Sprint("b", len(c.bookings)), iv, shape.PerNode, slots...)
		c.slots.Force(b)
		c.profile.Add(iv, shape.GPUs())
		c.vectors.Add(iv, calendar.Vector{int64(shape.GPUs()), 1, 2, 3, 4})
		c.bookings = append(c.bookings, b)
	}
	return c
}

type question struct {
	iv    calendar.Interval
	shape capacity.Shape
}

func (c *crowd) drawQuestions() []question {
	all := make([]question, 1024)
	for i := range all {
		all[i] = question{c.drawWindow(), c.drawShape()}
	}
	return all
}

var sizes = map[string]int{"10k": 10_000, "100k": 100_000}

func benchmarkEach(b *testing.B, figure string, run func(b *testing.B, c *crowd, asked []question)) {
	for _, name := range []string{"10k", "100k"} {
		b.Run(name, func(b *testing.B) {
			c := newCrowd(sizes[name])
			asked := c.drawQuestions()
			c.slots.FindInto(nil, asked[0].shape, asked[0].iv, nil)
			b.ReportAllocs()
			b.ResetTimer()
			run(b, c, asked)
			b.StopTimer()
			if b.N > 100 {
				fmt.Printf("\nfigure: %s_%s %.0f ns\n", figure, name, float64(b.Elapsed().Nanoseconds())/float64(b.N))
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	benchmarkEach(b, "calendar_find", func(b *testing.B, c *crowd, asked []question) {
		dst := make([]int, 0, 16)
		for i := range b.N {
			q := asked[i%len(asked)]
			dst, _ = c.slots.FindInto(dst[:0], q.shape, q.iv, nil)
		}
	})
}

func BenchmarkFindAndPeak(b *testing.B) {
	benchmarkEach(b, "calendar_find_and_peak", func(b *testing.B, c *crowd, asked []question) {
		dst := make([]int, 0, 16)
		for i := range b.N {
			q := asked[i%len(asked)]
			dst, _ = c.slots.FindInto(dst[:0], q.shape, q.iv, nil)
			c.vectors.Peak(q.iv)
		}
	})
}

func BenchmarkFindInTiers(b *testing.B) {
	benchmarkEach(b, "calendar_find_tiers", func(b *testing.B, c *crowd, asked []question) {
		tiers := calendar.TiersOf(c.slots.Size(), func(slot int) int { return slot % 5 })
		dst := make([]int, 0, 16)
		for i := range b.N {
			q := asked[i%len(asked)]
			dst, _ = c.slots.FindInto(dst[:0], q.shape, q.iv, tiers)
		}
	})
}

// A question that has no answer must look everywhere.
func BenchmarkFindNothing(b *testing.B) {
	benchmarkEach(b, "calendar_find_nothing", func(b *testing.B, c *crowd, asked []question) {
		dst := make([]int, 0, 1250)
		for i := range b.N {
			dst, _ = c.slots.FindInto(dst[:0], capacity.Shape{Nodes: 1250, PerNode: 8}, asked[i%len(asked)].iv, nil)
		}
	})
}

func BenchmarkProfilePeak(b *testing.B) {
	benchmarkEach(b, "calendar_peak", func(b *testing.B, c *crowd, asked []question) {
		for i := range b.N {
			c.profile.Peak(asked[i%len(asked)].iv)
		}
	})
}

func BenchmarkVectorProfilePeak(b *testing.B) {
	benchmarkEach(b, "calendar_vector_peak", func(b *testing.B, c *crowd, asked []question) {
		for i := range b.N {
			c.vectors.Peak(asked[i%len(asked)].iv)
		}
	})
}

func BenchmarkProfileAdd(b *testing.B) {
	benchmarkEach(b, "calendar_profile_add", func(b *testing.B, c *crowd, asked []question) {
		for i := range b.N {
			q := asked[i%len(asked)]
			c.profile.Add(q.iv, 1-2*(i/len(asked)%2))
		}
	})
}

func BenchmarkForceRemove(b *testing.B) {
	benchmarkEach(b, "calendar_force_remove", func(b *testing.B, c *crowd, _ []question) {
		for i := range b.N {
			taken := c.bookings[i%len(c.bookings)]
			c.slots.Remove(taken.ID)
			c.slots.Force(taken)
		}
	})
}

func BenchmarkEarliest(b *testing.B) {
	benchmarkEach(b, "calendar_earliest", func(b *testing.B, c *crowd, asked []question) {
		for i := range b.N {
			c.slots.Earliest(capacity.Shape{Nodes: 1100, PerNode: 8}, 4*time.Hour, asked[i%len(asked)].iv.Start,
				at(24*60))
		}
	})
}

// Force builds a small pool's calendar, as one verb does.
func BenchmarkSmallPool(b *testing.B) {
	for i := range b.N {
		s := calendar.NewSlots(8, 8)
		for j := range 40 {
			s.Force(booking(fmt.Sprint("b", j), hours(j, j+1+i%3), 2, j%8))
		}
		s.Find(capacity.Shape{Nodes: 2, PerNode: 4}, hours(3, 9), nil)
	}
}
