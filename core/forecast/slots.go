package forecast

import "math/bits"

// slotSeconds and daySlots cut a day into stretches whose arrivals are remembered until the same time of the next day.
const (
	slotSeconds = 300
	daySlots    = 86400 / slotSeconds
	hourSlots   = 3600 / slotSeconds
	keptSlots   = daySlots + 2 // so that what came in this stretch of yesterday is still there
)

// slots are the GPUs that arrived in each stretch of the last day, at most 255 each.
type slots [keptSlots]uint8

// passTo forgets, as time passes, what is a day old.
func (s *slots) passTo(now, last int64) {
	to := now / slotSeconds
	for from := max(last/slotSeconds+1, to-keptSlots+1); from <= to; from++ {
		s[from%keptSlots] = 0
	}
}

// add counts an arrival.
func (s *slots) add(now int64, gpus int) {
	at := &s[now/slotSeconds%keptSlots]
	*at = uint8(min(255, int(*at)+gpus))
}

// clock is what the cross features see of the time and of what came at such times.
type clock struct {
	slot, phase, hour int
	day, hourAgo      [3]uint8 // GPUs that arrived a day and an hour before this stretch and the next two
}

// at returns what is seen at a second.
func (s *slots) at(now int64) clock {
	n := now / slotSeconds
	c := clock{slot: int(n % hourSlots), phase: int(now % slotSeconds / phaseSeconds), hour: int(now / 3600 % 24)}
	for i := range c.day {
		c.day[i] = s.before(n+int64(i), daySlots)
		c.hourAgo[i] = s.before(n+int64(i), hourSlots)
	}
	return c
}

// before returns what arrived so many stretches before one that has not passed.
func (s *slots) before(stretch, ago int64) uint8 { return s[(stretch+keptSlots-ago)%keptSlots] }

// lagOf tells how many GPUs came, as against a level: 0 for none.
func lagOf(gpus uint8, level int) int {
	if gpus == 0 {
		return 0
	}
	return 1 + max(0, min(5, 2+bits.Len8(gpus)-bits.Len(uint(level))))
}

// phaseSeconds part a stretch in three.
const phaseSeconds = slotSeconds / 3

// nextKnown returns the first third of a stretch after now and before a second, for which something came a day or an
// hour before the stretch that follows it: a look is worth it there.
func (s *slots) nextKnown(now, before int64) int64 {
	for at := now/phaseSeconds*phaseSeconds + phaseSeconds; at < before; at += phaseSeconds {
		n := at/slotSeconds + 1
		if s.before(n, daySlots) > 0 || s.before(n, hourSlots) > 0 {
			return at
		}
	}
	return before
}
