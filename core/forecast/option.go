package forecast

import "math"

// Part is a part of what the model sees.
type Part int

// The parts that an OnlineModel can do without.
const (
	HourOfWeek  Part = iota // the time of day, the weekend, and the rhythm of the tenant's weeks
	Hazard                  // how long ago levels were last used, and jobs last came and ended
	Calibration             // the record of how often what could come did
)

// Option changes a new OnlineModel.
type Option func(*OnlineModel)

// MaxPace bounds Pace: with it, a second counts as half an hour.
const MaxPace = 1800

// Pace makes the model's clock run so many times faster than the world's, from 1
// to 1,800, between which other numbers are cut. What it looks ahead, and what it
// tells apart, are minutes of its own clock: where machines boot in seconds and
// rhythms last minutes, as in a demo, the world's minutes are too coarse. The
// hours of the week mean nothing then. It shows in the state of the model.
func Pace(times int) Option {
	return func(f *OnlineModel) { f.pace = int64(min(max(1, times), MaxPace)) }
}

// Teaching is for an OnlineModel that a prior is learned with. Its cross features
// take larger steps all the time, so that they learn what is peculiar to the traces,
// and the network, which is all that a prior keeps, what traces have in common. With
// equal steps the waits of other traces are a little lower still, but where nothing
// can be foreseen the prior holds GPUs for nothing.
func Teaching() Option {
	return func(f *OnlineModel) {
		f.model.crossFeatures.rate, f.model.crossFeatures.learned = teachingRate, math.MaxFloat64
	}
}

// Pace returns how many times faster than the world's the model's clock runs.
func (f *OnlineModel) Pace() int { return int(f.pace) }

// Without hides a part from the model. It is for measuring what the part is worth
// and for nothing else: neither a stored state nor a prior says that it was
// hidden.
func Without(p Part) Option { return func(f *OnlineModel) { f.hidden = append(f.hidden, p) } }

// hideParts sets the inputs of parts to 0.
func (l *features) hideParts(parts []Part) {
	for _, p := range parts {
		l.hidePart(p)
	}
}

// hidePart sets the inputs of a part to 0.
func (l *features) hidePart(p Part) {
	var ofTenant, ofBin []int // as in past.see and past.seeBin
	switch p {
	case HourOfWeek:
		ofTenant = []int{24, 25, 26, 28, 29}
		l.clock = clock{}
	case Hazard:
		ofTenant, ofBin = []int{2, 3, 33}, []int{0, 8}
	case Calibration:
		ofBin = []int{15, 16, 17, 18}
	}
	for _, i := range ofTenant {
		l.tenant[i] = 0
	}
	for b := range l.bin {
		for _, i := range ofBin {
			l.bin[b][i] = 0
		}
	}
}
