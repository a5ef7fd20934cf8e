package forecast

// Outlook says how likely it is that a tenant's demand rises above what it is
// now, level by level and for several horizons. The zero value expects nothing.
type Outlook struct {
	Demand  int       // GPUs of jobs submitted and not ended
	awaited []awaited // GPUs that are taken to be in use besides, from which the chances count
	pace    float64   // see Pace; 0 counts as 1
	bins    int
	chances [bins][outputs]float32
	hazard  [bins]float32 // log-odds of the hazard
}

// enforceOrder makes the chances consistent: a longer horizon and a lower level are
// never less likely.
func (o *Outlook) enforceOrder() {
	for b := range o.bins {
		c := &o.chances[b]
		for k := 1; k < knots; k++ {
			c[k] = max(c[k], c[k-1])
		}
		if b == 0 {
			continue
		}
		o.hazard[b] = min(o.hazard[b], o.hazard[b-1])
		for k := range knots {
			c[k] = min(c[k], o.chances[b-1][k])
		}
	}
}

// clockRate is how many seconds of the model's own clock one second is.
func (o Outlook) clockRate() float64 { return max(1, o.pace) }

// Chance returns the probability that demand rises by at least level GPUs within
// so many seconds; horizons beyond 40 minutes count as 40 minutes.
func (o Outlook) Chance(level int, seconds float64) float64 {
	if len(o.awaited) == 0 || level < 1 || !(seconds > 0) {
		return o.chanceBeside(level, seconds)
	}
	return o.tail(level, seconds)[level-1]
}

// chancesAround are those of a level and of the next one.
func (o *Outlook) chancesAround(level int, seconds float64) (chance, next float64) {
	if len(o.awaited) == 0 {
		return o.chanceBeside(level, seconds), o.chanceBeside(level+1, seconds)
	}
	tail := o.tail(level+1, seconds)
	if level == 0 {
		return 1, tail[0]
	}
	return tail[level-1], tail[level]
}

// tail are the chances of the first levels.
func (o *Outlook) tail(levels int, seconds float64) []float64 {
	tail := make([]float64, levels)
	for i := range tail {
		tail[i] = o.chanceBeside(i+1, seconds)
	}
	o.addAwaited(tail, seconds*o.clockRate())
	return tail
}

// chanceBeside is the chance of a rise by what comes beside the GPUs that are awaited.
func (o *Outlook) chanceBeside(level int, seconds float64) float64 {
	if level < 1 {
		return 1
	}
	if level > topLevel || !(seconds > 0) {
		return 0
	}
	b := binOf(level)
	if b >= o.bins {
		return 0
	}
	at := float64(level-firstLevel[b]) / float64(binWidth[b])
	seconds *= o.clockRate()
	low, high := o.chanceWithin(b, seconds), 0.0
	if b+1 < o.bins {
		high = o.chanceWithin(b+1, seconds)
	}
	return low + at*(high-low)
}

// chanceWithin is the chance of a bin's first level, linear between knots. The seconds
// here and below are those of the model's own clock.
func (o *Outlook) chanceWithin(b int, seconds float64) float64 {
	from, before := 0.0, 0.0
	for k, h := range knot {
		p := float64(o.chances[b][k])
		if seconds <= h {
			return before + (p-before)*(seconds-from)/(h-from)
		}
		from, before = h, p
	}
	return before
}

// Within returns the distribution of the highest rise of demand within so many
// seconds: for an arrival that is the GPUs that it takes beyond those that become
// free.
func (o Outlook) Within(seconds float64) Forecast {
	if len(o.awaited) > 0 {
		return fromTail(o.tail(min(topLevel+o.awaitedGPUs(), MaxLevels), seconds))
	}
	tail := make([]float64, 0, 16)
	for level := 1; level <= topLevel; level++ {
		p := o.Chance(level, seconds)
		if p <= negligible {
			break
		}
		tail = append(tail, p)
	}
	return fromTail(tail)
}

// Start returns after how many seconds demand has risen by level GPUs with
// probability p, and false if that takes more than 40 minutes.
func (o Outlook) Start(level int, p float64) (seconds float64, ok bool) {
	from, before := 0.0, 0.0
	for _, h := range knot {
		h /= o.clockRate()
		c := o.Chance(level, h)
		if c >= p {
			if c == before {
				return from, true
			}
			return from + (h-from)*max(0, p-before)/(c-before), true
		}
		from, before = h, c
	}
	return 0, false
}
