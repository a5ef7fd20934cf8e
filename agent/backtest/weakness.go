package backtest

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// Hour is what remains of waiting in one hour of the week with Forewarm.
type Hour struct {
	Jobs      int     `json:"jobs"`
	WaitHours float64 `json:"wait_hours"` // of all these jobs together
}

// Spot is where much waiting remains.
type Spot struct {
	Kind      string  `json:"kind"`  // hour (of the week) or size (of the job)
	Label     string  `json:"label"` // such as Mon 09:00, or 5–8 GPUs
	Jobs      int     `json:"jobs"`
	Mean      float64 `json:"mean_wait_seconds"`
	WaitHours float64 `json:"wait_hours"`    // of all these jobs together
	Share     float64 `json:"share_percent"` // of all waiting that remains
}

// spotsShown is how many spots of each kind a report names.
const spotsShown = 3

// bucket adds up the waits of jobs that have something in common.
type bucket struct {
	jobs int
	wait int64 // seconds
}

func (b bucket) toHours() float64 { return float64(b.wait) / 3600 }

// whereWaiting says where waiting remains with Forewarm.
func (e *experiment) whereWaiting() (week [7][24]Hour, spots []Spot) {
	var hours [7][24]bucket
	var sizes [32]bucket
	total := int64(0)
	_, from, _ := e.past.trace.Window()
	waits := e.shownTrial(Forewarm).waits
	for i, j := range e.past.trace.Jobs {
		if j.Submit <= from {
			continue
		}
		at := time.Unix(j.Submit, 0).In(e.cfg.Zone)
		hours[(int(at.Weekday())+6)%7][at.Hour()].addWait(waits[i])
		sizes[bits.Len(uint(j.GPUs-1))].addWait(waits[i])
		total += waits[i]
	}
	var byHour, bySize []Spot
	for day := range hours {
		for hour, b := range hours[day] {
			week[day][hour] = Hour{Jobs: b.jobs, WaitHours: roundFigure(b.toHours())}
			byHour = append(byHour, b.toSpot("hour", hourLabel(day, hour), total))
		}
	}
	for size, b := range sizes {
		bySize = append(bySize, b.toSpot("size", sizeLabel(size), total))
	}
	return week, append(worstSpots(byHour), worstSpots(bySize)...)
}

func (b *bucket) addWait(wait int64) {
	b.jobs++
	b.wait += wait
}

func (b bucket) toSpot(kind, label string, total int64) Spot {
	s := Spot{Kind: kind, Label: label, Jobs: b.jobs, WaitHours: roundFigure(b.toHours())}
	if b.wait > 0 {
		s.Mean, s.Share = roundFigure(float64(b.wait)/float64(b.jobs)), roundFigure(100*float64(b.wait)/float64(total))
	}
	return s
}

// worstSpots returns the spots with the most waiting, the earlier of equals first.
func worstSpots(spots []Spot) []Spot {
	slices.SortStableFunc(spots, func(a, b Spot) int { return cmp.Compare(b.WaitHours, a.WaitHours) })
	n := 0
	for n < min(len(spots), spotsShown) && spots[n].WaitHours > 0 {
		n++
	}
	return spots[:n]
}

func hourLabel(day, hour int) string {
	return fmt.Sprintf("%s %02d:00", Weekdays()[day], hour)
}

// Weekdays are the names of the days of Report.Week.
func Weekdays() [7]string { return [7]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"} }

// sizeLabel names the jobs of over 2^(size-1) and at most 2^size GPUs.
func sizeLabel(size int) string {
	switch size {
	case 0:
		return "1 GPU"
	case 1:
		return "2 GPUs"
	default:
		return fmt.Sprintf("%d–%d GPUs", 1<<(size-1)+1, 1<<size)
	}
}
