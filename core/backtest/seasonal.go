package backtest

import "math"

// The times of a SeasonalNaive; minute is in seconds, the others in minutes.
const (
	minute  = 60
	week    = 7 * 24 * 60
	aside   = 15 // before and after the same time of last week
	history = week + 2*aside
)

// seasonal wants what was wanted a week ago.
type seasonal struct {
	factor float64
	demand int
	minute int64          // the newest of peaks
	peaks  [history]int32 // the largest demand within a minute, by minute modulo history
	next   int64
}

// SeasonalNaive returns a policy that wants factor times the largest demand of
// the same time last week, 15 minutes before and after included. It decides at
// every full minute, on what it has seen itself. A demand is the GPUs of jobs
// that were submitted and had not ended.
func SeasonalNaive(factor float64) Policy { return &seasonal{factor: factor, next: never} }

func (s *seasonal) Submit(now int64, j Job) {
	if s.next == never {
		s.minute, s.next = now/minute, (now+minute-1)/minute*minute
	}
	s.changeDemand(now, j.GPUs)
}

func (s *seasonal) End(now int64, j Job, _ int64) { s.changeDemand(now, -j.GPUs) }

func (s *seasonal) changeDemand(now int64, gpus int) {
	s.advanceTo(now / minute)
	s.demand += gpus
	at := &s.peaks[s.minute%history]
	*at = max(*at, int32(s.demand))
}

// advanceTo goes on to a minute with an unchanged demand.
func (s *seasonal) advanceTo(to int64) {
	for s.minute < to {
		s.minute++
		s.peaks[s.minute%history] = int32(s.demand)
	}
}

func (s *seasonal) Next() int64 { return s.next }

func (s *seasonal) Target(now int64) int {
	s.next = now/minute*minute + minute
	s.advanceTo(now / minute)
	peak := int32(0)
	for m := s.minute - week - aside; m <= s.minute-week+aside; m++ {
		if m > 0 {
			peak = max(peak, s.peaks[m%history])
		}
	}
	return int(math.Round(s.factor * float64(peak)))
}
