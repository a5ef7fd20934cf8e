package forecast

import "math"

// The sizes of what the model sees: of the tenant, and of one bin.
const (
	tenantInputs = 34
	binInputs    = 19
	inputs       = tenantInputs + binInputs
)

// features is what the model sees at one second.
type features struct {
	tenant [tenantInputs]float32
	bin    [bins][binInputs]float32
	clock  clock
}

// logSince is the logarithm of the seconds since a second that may never have been.
func logSince(now, then int64) float32 {
	if then == 0 {
		return 22 // two months
	}
	return log2(float64(now-then) + 8)
}

// fillFeatures fills l with what is known at now, to which p must have faded.
func (p *past) fillFeatures(now int64, l *features) {
	t := l.tenant[:0]
	t = append(t, log2(float64(p.Demand+1)), log2(max(1, float64(p.Size))), logSince(now, p.Submitted),
		logSince(now, p.EndedAt))
	for _, x := range p.Arrived {
		t = append(t, log2(float64(x)+0.05))
	}
	for _, x := range p.Ended {
		t = append(t, log2(float64(x)+0.05))
	}
	t = append(t, log2(float64(p.Gap1)+8), log2(float64(p.Gap2)+8), log2(float64(max(1, p.JobGPUs))),
		log2(float64(max(1, p.EndGPUs))), log2(float64(p.EndAge)+8))
	for _, x := range p.Young {
		t = append(t, log2(float64(x)+1))
	}
	t = p.seeClock(now, t)
	_ = append(t, log2(float64(p.Burst)+1), log2(float64(p.Before)+1),
		log2((float64(now-p.Submitted)+8)/(float64(p.Gap1)+8)))
	l.clock = p.Slots.at(now)
}

// seeClock appends what depends on the time of day and of the week.
func (p *past) seeClock(now int64, t []float32) []float32 {
	angle := float64(now%86400) / 86400 * 2 * math.Pi
	weekend := float32(0)
	if day := (now/86400 + 4) % 7; day == 0 || day == 6 { // 1970 began on a Thursday
		weekend = 1
	}
	t = append(t, float32(math.Sin(angle)), float32(math.Cos(angle)), weekend, log2(float64(max(1, p.Jobs))))
	weeks := float64(now-p.First)/weekSecs + 1
	mean := float64(p.Jobs) / weeks / hourOfWeek
	ratio := func(hour int64) float32 {
		return log2((float64(p.Week[hour%hourOfWeek])/weeks + 0.5*mean + 0.02) / (1.5*mean + 0.02))
	}
	return append(t, ratio(now/3600), ratio(now/3600+1), log2(mean*64+1))
}

// seeBin fills in what is known of one bin.
func (p *past) seeBin(now int64, b int, to *[binInputs]float32) {
	j := float64(firstLevel[b])
	l := append(to[:0], logSince(now, p.Steps.lastUse(p.Demand+firstLevel[b])))
	for _, x := range p.GPUs {
		l = append(l, log2(float64(x)/j+0.01))
	}
	l = append(l, log2(float64(p.Ended[1])/j+0.01), logSince(now, p.Big[b]),
		log2(float64(p.BigRate[b][0])+0.05), log2(float64(p.BigRate[b][1])+0.05),
		log2(j), log2(float64(p.JobGPUs+1)/j), log2(float64(p.EndGPUs+1)/j), log2(float64(p.Size+1)/j))
	for _, x := range p.Seen[b] {
		l = append(l, log2(max(0, float64(x))+0.001))
	}
	_ = l
}

// inputOf is one of the inputs of a bin.
func (l *features) inputOf(i, bin int) float32 {
	if i < tenantInputs {
		return l.tenant[i]
	}
	return l.bin[bin][i-tenantInputs]
}
