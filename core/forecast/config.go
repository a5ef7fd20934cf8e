package forecast

import (
	"fmt"
	"time"
)

// Config shapes a Series. The zero value means the defaults.
type Config struct {
	Period time.Duration `json:"period"` // the pattern repeats after this; default a week
	Bin    time.Duration `json:"bin"`    // one time of the period that has its own statistics; default an hour
	// Window is the width of the windows in which arrivals are counted. The default is 6 min (a 300 s boot and a
	// tick), or Bin where 6 min do not divide it.
	Window      time.Duration `json:"window"`
	PriorWeight float64       `json:"prior_weight"` // how many windows of the tenant's mean a bin starts with; default 24
	HalfLife    time.Duration `json:"half_life"`    // what was seen this long ago counts half; 0 never forgets
}

// maxBins bounds the size of a Series: the minutes of a week.
const maxBins = 7 * 24 * 60

// WithDefaults returns c with its zero fields filled in.
func (c Config) WithDefaults() Config {
	if c.Period == 0 {
		c.Period = 7 * 24 * time.Hour
	}
	if c.Bin == 0 {
		c.Bin = min(time.Hour, c.Period)
	}
	if c.Window == 0 {
		c.Window = 6 * time.Minute
		if c.Bin < c.Window || c.Bin%c.Window != 0 {
			c.Window = c.Bin
		}
	}
	if c.PriorWeight == 0 {
		c.PriorWeight = 24
	}
	return c
}

// Validate says what is wrong with c, or returns nil. It expects WithDefaults to
// have been applied.
func (c Config) Validate() error {
	switch {
	case c.Window < time.Second || c.Window%time.Second != 0:
		return fmt.Errorf("window: %v is not a whole number of seconds of at least one", c.Window)
	case c.Bin < c.Window || c.Bin%c.Window != 0:
		return fmt.Errorf("bin: %v is not a multiple of the window %v", c.Bin, c.Window)
	case c.Period < c.Bin || c.Period%c.Bin != 0:
		return fmt.Errorf("period: %v is not a multiple of the bin %v", c.Period, c.Bin)
	case c.Period/c.Bin > maxBins:
		return fmt.Errorf("bin: %d bins in a period, at most %d are allowed", c.Period/c.Bin, maxBins)
	case !(c.PriorWeight > 0 && c.PriorWeight <= 1e6):
		return fmt.Errorf("prior_weight: %v is not in (0, 1000000]", c.PriorWeight)
	case c.HalfLife < 0:
		return fmt.Errorf("half_life: %v is negative", c.HalfLife)
	default:
		return nil
	}
}

func (c Config) binsPerPeriod() int64 { return int64(c.Period / c.Bin) }
func (c Config) perBin() int64        { return int64(c.Bin / c.Window) }
func (c Config) windowSeconds() int64 { return int64(c.Window / time.Second) }
