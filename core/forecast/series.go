package forecast

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Series is what one tenant's past says about its future: for each bin of the
// period, the mean and the scatter of GPU arrivals per window, drawn towards
// the tenant's overall ones by PriorWeight windows. It is the hour-of-week
// negative-binomial newsvendor, for any width of bin.
//
// Arrivals come in the order of time; a window counts once it has closed, and a
// window in which nothing arrived counts as zero once Advance has passed it. A
// Series is not safe for concurrent use.
type Series struct {
	cfg     Config
	started bool
	open    int64 // the window that still fills, in windows since 1970
	arrived int64 // GPUs that arrived in it
	total   cell
	bins    []cell
	jobs    int64
	gpus    int64
	largest int
}

// MaxJob is the largest number of GPUs of one arrival that a Series accepts.
const MaxJob = 1 << 20

// ErrGPUs says that an arrival is not of 1 to MaxJob GPUs.
var ErrGPUs = errors.New("gpus out of range")

// ErrTime says that a time lies outside the years 1970 to 2200.
var ErrTime = errors.New("time out of range")

// OrderError says that an arrival is older than the window that is open: it can
// no longer count, because later forecasts have been made without it.
type OrderError struct {
	At, Open time.Time
}

// Error names both times.
func (e *OrderError) Error() string {
	return fmt.Sprintf("arrival at %s is older than the open window, which began at %s",
		e.At.UTC().Format(time.RFC3339), e.Open.UTC().Format(time.RFC3339))
}

// New returns an empty Series; zero fields of c mean the defaults.
func New(c Config) (*Series, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checking the forecast configuration: %w", err)
	}
	return &Series{cfg: c, bins: make([]cell, c.binsPerPeriod())}, nil
}

// Config returns the configuration with its defaults filled in.
func (s *Series) Config() Config { return s.cfg }

// Observe counts the arrival of a job that asks for gpus. It fails with
// ErrGPUs, ErrTime or an *OrderError, and then nothing has changed. Arrivals
// within one window may come in any order.
func (s *Series) Observe(at time.Time, gpus int) error {
	if gpus < 1 || gpus > MaxJob {
		return fmt.Errorf("observing %d GPUs: %w", gpus, ErrGPUs)
	}
	window, err := s.windowAt(at)
	if err != nil {
		return fmt.Errorf("observing an arrival: %w", err)
	}
	if s.started && window < s.open {
		return &OrderError{At: at, Open: s.windowStart(s.open)}
	}
	s.moveTo(window)
	s.arrived += int64(gpus)
	s.jobs++
	s.gpus += int64(gpus)
	s.largest = max(s.largest, gpus)
	return nil
}

// Advance closes every window that ended by now, so that silence counts. Before
// the first arrival, or for an earlier time, it does nothing. Its cost does not
// grow with the time passed beyond one period.
func (s *Series) Advance(now time.Time) error {
	window, err := s.windowAt(now)
	if err != nil {
		return fmt.Errorf("advancing a series: %w", err)
	}
	if s.started && window > s.open {
		s.moveTo(window)
	}
	return nil
}

// Jobs returns how many arrivals were counted.
func (s *Series) Jobs() int64 { return s.jobs }

// Largest returns the GPUs of the largest single arrival, 0 before the first.
func (s *Series) Largest() int { return s.largest }

// JobGPUs returns the mean GPUs of one arrival, 1 before the first.
func (s *Series) JobGPUs() float64 {
	if s.jobs == 0 {
		return 1
	}
	return float64(s.gpus) / float64(s.jobs)
}

// At returns the forecast of the GPUs that arrive in [start, start+width), by
// adding up the bins it covers. A width that is not positive gives the zero
// Forecast.
func (s *Series) At(start time.Time, width time.Duration) Forecast {
	mean, variance := s.Moments(start, width)
	return NegativeBinomial(mean, variance)
}

// Moments returns the mean and the variance behind At. Windows are taken to be
// independent of each other, so both add up over time.
func (s *Series) Moments(start time.Time, width time.Duration) (mean, variance float64) {
	if width <= 0 {
		return 0, 0
	}
	if periods := width / s.cfg.Period; periods > 0 {
		mean, variance = s.sumBins(start, s.cfg.Period)
		mean, variance = mean*float64(periods), variance*float64(periods)
		width -= periods * s.cfg.Period
	}
	m, v := s.sumBins(start, width)
	return mean + m, variance + v
}

// sumBins adds up the bins of less than or exactly one period.
func (s *Series) sumBins(start time.Time, width time.Duration) (mean, variance float64) {
	binSeconds := int64(s.cfg.Bin / time.Second)
	number := floorDiv(start.Unix(), binSeconds)
	into := start.Sub(time.Unix(number*binSeconds, 0))
	for width > 0 {
		piece := min(width, s.cfg.Bin-into)
		m, v := s.bins[floorMod(number, s.cfg.binsPerPeriod())].shrinkTo(s.total, s.cfg.PriorWeight)
		share := countWindows(piece, s.cfg.Window)
		mean, variance = mean+share*m, variance+share*v
		width, into, number = width-piece, 0, number+1
	}
	return mean, variance
}

// moveTo closes windows until window is the open one.
func (s *Series) moveTo(window int64) {
	if !s.started {
		s.started, s.open = true, window
		return
	}
	if window == s.open {
		return
	}
	s.closeWindow(s.open, float64(s.arrived))
	s.closeEmpty(s.open+1, window)
	s.open, s.arrived = window, 0
}

// closeWindow counts one window with its arrivals.
func (s *Series) closeWindow(window int64, gpus float64) {
	s.total = s.total.addWindow(gpus, s.keptShare(s.cfg.Window))
	bin := s.binOf(window)
	s.bins[bin] = s.bins[bin].addWindow(gpus, s.keepInBin())
}

// closeEmpty counts the windows [from, to) as empty, bin by bin.
func (s *Series) closeEmpty(from, to int64) {
	if from >= to {
		return
	}
	s.total = s.total.addSilence(to-from, s.keptShare(s.cfg.Window))
	perBin, perPeriod := s.cfg.perBin(), s.cfg.perBin()*s.cfg.binsPerPeriod()
	if periods := (to - from) / perPeriod; periods > 0 {
		for i := range s.bins {
			s.bins[i] = s.bins[i].addSilence(periods*perBin, s.keepInBin())
		}
		from += periods * perPeriod
	}
	for from < to {
		next := min(to, (floorDiv(from, perBin)+1)*perBin)
		bin := s.binOf(from)
		s.bins[bin] = s.bins[bin].addSilence(next-from, s.keepInBin())
		from = next
	}
}

// keptShare is the share of its weight that an observation keeps over d.
func (s *Series) keptShare(d time.Duration) float64 {
	if s.cfg.HalfLife == 0 {
		return 1
	}
	return math.Exp2(-countWindows(d, s.cfg.HalfLife))
}

// keepInBin is keep for one window of a bin: a bin gets perBin of them in a
// period.
func (s *Series) keepInBin() float64 {
	return s.keptShare(s.cfg.Period / time.Duration(s.cfg.perBin()))
}

func (s *Series) binOf(window int64) int64 {
	return floorMod(floorDiv(window, s.cfg.perBin()), s.cfg.binsPerPeriod())
}

func (s *Series) windowStart(window int64) time.Time {
	return time.Unix(window*s.cfg.windowSeconds(), 0).UTC()
}

func (s *Series) windowAt(at time.Time) (int64, error) {
	if year := at.UTC().Year(); year < 1970 || year > 2200 {
		return 0, fmt.Errorf("year %d: %w", year, ErrTime)
	}
	return at.Unix() / s.cfg.windowSeconds(), nil
}

func floorMod(a, b int64) int64 { return ((a % b) + b) % b }

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
