package forecast

// Part is a part of what the model sees.
type Part int

// The parts that a Fleet can do without.
const (
	HourOfWeek  Part = iota // the time of day, the weekend, and the rhythm of the tenant's weeks
	Hazard                  // how long ago levels were last used, and jobs last came and ended
	Calibration             // the record of how often what could come did
)

// Option changes a new Fleet.
type Option func(*Fleet)

// Without hides a part from the model. It is for measuring what the part is worth
// and for nothing else: neither a stored state nor a prior says that it was
// hidden.
func Without(p Part) Option { return func(f *Fleet) { f.hidden = append(f.hidden, p) } }

// hide sets the inputs of a part to 0.
func (l *look) hide(p Part) {
	var ofTenant, ofBin []int // as in past.see and past.seeBin
	switch p {
	case HourOfWeek:
		ofTenant = []int{24, 25, 26, 28, 29}
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
