package forecast

// expectation is something that is expected of a GPU of a bin: a sum of its chances within each knot, which are
// straight lines between them. It is worked out once for all bins.
type expectation struct {
	base    float64
	weights [knots]float64
}

// of is the expectation at a bin's chances.
func (e *expectation) of(chances *[outputs]float32) float64 {
	sum := e.base
	for k, w := range e.weights {
		sum += w * float64(chances[k])
	}
	return sum
}

// addChance adds some times the chance of being needed within so many seconds.
func (e *expectation) addChance(seconds, times float64) {
	from := 0.0
	for k, h := range knot {
		if seconds <= h {
			share := (seconds - from) / (h - from)
			e.weights[k] += times * share
			if k > 0 {
				e.weights[k-1] += times * (1 - share)
			}
			return
		}
		from = h
	}
	e.weights[knots-1] += times
}

// chanceWithin is the chance of being needed within so many seconds.
func chanceWithin(seconds float64) (e expectation) {
	e.addChance(seconds, 1)
	return e
}

// idleTime is how many of the seconds between two from now a GPU is without work.
func idleTime(from, to float64) (e expectation) {
	add := func(from, to float64) { // a stretch in which the chance is a straight line
		e.base += to - from
		e.addChance(from, (from-to)/2)
		e.addChance(to, (from-to)/2)
	}
	at := from
	for _, h := range knot {
		if h <= at {
			continue
		}
		if h >= to {
			break
		}
		add(at, h)
		at = h
	}
	if at < to {
		add(at, to)
	}
	return e
}
