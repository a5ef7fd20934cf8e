package backtest

import (
	"math"
	"time"
)

// never is a second that does not come.
const never = math.MaxInt64

// deaf is the part of a Policy that does not listen to jobs.
type deaf struct{}

func (deaf) Submit(int64, Job)     {}
func (deaf) End(int64, Job, int64) {}

// alwaysOn wants the same number of GPUs at all times.
type alwaysOn struct {
	deaf
	next  int64
	level int
}

// AlwaysOn returns a policy that wants level GPUs from a second on.
func AlwaysOn(from int64, level int) Policy { return &alwaysOn{next: max(1, from), level: level} }

func (a *alwaysOn) Next() int64 { return a.next }

func (a *alwaysOn) Target(int64) int {
	a.next = never
	return a.level
}

// Hours are the opening hours of a fixed schedule: from one hour of the day to
// another, on weekdays.
type Hours struct {
	Open, Close int            // hours of the day, 9 and 18 for nine to six
	Zone        *time.Location // of the hours; nil is UTC
}

// schedule wants a number of GPUs during opening hours, and none outside.
type schedule struct {
	deaf
	hours Hours
	level int
	next  int64
}

// Schedule returns a policy that wants level GPUs during the hours given, Monday
// to Friday, from a second on. They boot when the hours begin.
func Schedule(from int64, h Hours, level int) Policy {
	if h.Zone == nil {
		h.Zone = time.UTC
	}
	return &schedule{hours: h, level: level, next: max(1, from)}
}

func (s *schedule) Next() int64 { return s.next }

func (s *schedule) Target(now int64) int {
	open := s.hours.isOpen(now)
	s.next = s.hours.nextChange(now)
	if !open {
		return 0
	}
	return s.level
}

func (h Hours) isOpen(now int64) bool {
	t := time.Unix(now, 0).In(h.Zone)
	weekday := t.Weekday() != time.Saturday && t.Weekday() != time.Sunday
	return weekday && t.Hour() >= h.Open && t.Hour() < h.Close
}

// nextChange returns the next second in which the hours may begin or end.
func (h Hours) nextChange(now int64) int64 {
	t := time.Unix(now, 0).In(h.Zone)
	for day := 0; ; day++ {
		for _, hour := range []int{h.Open, h.Close} {
			at := time.Date(t.Year(), t.Month(), t.Day()+day, hour, 0, 0, 0, h.Zone).Unix()
			if at > now {
				return at
			}
		}
	}
}
