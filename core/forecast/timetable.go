package forecast

// habit is a job, or a number of equal ones, that the clock starts; or one that came once and may become a habit.
type habit struct {
	Last  int64   `json:"last"`  // second at which it came, or should have, last
	Every int32   `json:"every"` // seconds; 0 if it came once
	Size  int32   `json:"size"`  // GPUs of one job
	GPUs  int32   `json:"gpus"`  // of all jobs that came last
	Kept  float32 `json:"kept"`  // how often it came of late, of the times that it was due
	New   bool    `json:"new"`   // it has not been due yet
}

// timetable is what comes by the clock to a tenant class.
type timetable struct {
	Habits []habit `json:"habits"` // in no order
	Doubt  float32 `json:"doubt"`  // how often two jobs at a distance did not make a habit
}

// maxHabits bounds the memory.
const maxHabits = 10

// The periods that a habit may have: those of clocks, in seconds. Any other time between two equal jobs is by chance,
// mostly.
var periods = [...]int32{300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 28800, 43200, 86400, longestPeriod}

const longestPeriod = 604800

const (
	hoped     = 0.5  // how often a new habit is taken to be kept, where none was in vain
	following = 0.3  // by which part Kept follows each time that a habit is due,
	doubting  = 0.1  // and Doubt each that is due for the first time
	givenUp   = 0.15 // a habit is if it is kept less often than this
)

// due is when a habit is to come next.
func (h *habit) due() int64 { return h.Last + int64(h.Every) }

// grace is how much earlier or later than due it may come, in seconds.
func (h *habit) grace() int64 { return graceOf(h.Every) }

func graceOf(period int32) int64 { return int64(min(300, max(60, period/40))) }

// passTo notes what was due and did not come, and gives up what does not come any more.
func (t *timetable) passTo(now int64) {
	kept := t.Habits[:0]
	for _, h := range t.Habits {
		for h.isAlive() && h.due()+h.grace() < now {
			h.Last += int64(h.Every)
			t.judge(&h, 0)
		}
		if h.isAlive() || h.Every == 0 && now-h.Last <= longestPeriod+graceOf(longestPeriod) {
			kept = append(kept, h)
		}
	}
	t.Habits = kept
}

// isAlive reports whether it is a habit that has not been given up.
func (h *habit) isAlive() bool { return h.Every > 0 && (h.New || h.Kept >= givenUp) }

// judge takes it in whether a habit came when it was due: 1 or 0.
func (t *timetable) judge(h *habit, came float32) {
	h.Kept += following * (came - h.Kept)
	if h.New {
		t.Doubt += doubting * (1 - came - t.Doubt)
		h.New = false
	}
}

// add counts a job. It goes on with what came within the minute, keeps a habit, makes one of two, or may become one.
func (t *timetable) add(now int64, gpus int) {
	size := int32(gpus)
	var kept, second *habit
	for i := range t.Habits {
		h := &t.Habits[i]
		switch {
		case h.Size != size:
		case now-h.Last <= burstGap:
			h.GPUs += size
			return
		case h.Every > 0 && abs(now-h.due()) <= h.grace():
			kept = h
		case h.Every == 0 && periodOf(now-h.Last) > 0 && (second == nil || h.Last > second.Last):
			second = h
		}
	}
	switch {
	case kept != nil:
		kept.Last, kept.GPUs = now, size
		t.judge(kept, 1)
	case second != nil:
		*second = habit{Last: now, Every: periodOf(now - second.Last), Size: size, GPUs: size,
			Kept: hoped * (1 - t.Doubt), New: true}
	default:
		t.remember(habit{Last: now, Size: size, GPUs: size})
	}
}

// remember adds what came once; if there is no place, in the place of the oldest such.
func (t *timetable) remember(h habit) {
	hs := t.Habits
	if len(hs) < maxHabits {
		t.Habits = append(hs, h)
		return
	}
	oldest := -1
	for i := range hs {
		if hs[i].Every == 0 && (oldest < 0 || hs[i].Last < hs[oldest].Last) {
			oldest = i
		}
	}
	if oldest >= 0 {
		hs[oldest] = h
	}
}

// periodOf is the period that a time between two jobs may be, 0 if none.
func periodOf(seconds int64) int32 {
	for _, p := range periods {
		if abs(seconds-int64(p)) <= graceOf(p) {
			return p
		}
	}
	return 0
}

func abs(x int64) int64 { return max(x, -x) }

// punctual is how long before its time a habit's GPUs are to be ready, in seconds.
const punctual = 30

// leadOf is how long before a habit is due its GPUs are held, where a boot takes so many seconds at most.
func leadOf(boot float64) int64 { return int64(boot) + punctual }

// wanted is how many GPUs are to be held at a second for what comes by the clock. GPUs are held for a habit where that
// costs less than its jobs' waits and boots would, early enough for a slow boot to be over.
func (t *timetable) wanted(now int64, p Prices) int {
	n := 0
	for i := range t.Habits {
		h := &t.Habits[i]
		if h.Every == 0 || now < h.due()-leadOf(p.Boot+p.Late) || now > h.due()+h.grace() {
			continue
		}
		kept, gpus := float64(h.Kept), float64(h.GPUs)
		idle := gpus * (p.Boot + p.Late + punctual + (1-kept)*float64(h.grace()))
		if kept*p.Boot*(p.WaitWorth*gpus/float64(h.Size)+gpus) >= idle {
			n += int(h.GPUs)
		}
	}
	return n
}

// next is the first second after now, and before another, at which more or fewer GPUs may be wanted.
func (t *timetable) next(now, before, lead int64) int64 {
	for i := range t.Habits {
		h := &t.Habits[i]
		if h.Every == 0 {
			continue
		}
		for _, at := range [2]int64{h.due() - lead, h.due() + h.grace() + 1} {
			if at > now {
				before = min(before, at)
			}
		}
	}
	return before
}

// isSound reports whether the habits can have come from counting.
func (t *timetable) isSound(latest int64) bool {
	for _, h := range t.Habits {
		counted := h.Last >= 0 && h.Last <= latest && h.Every >= 0 && h.Size >= 1 && h.GPUs >= 1
		if !counted || !(h.Kept >= 0 && h.Kept <= 1) {
			return false
		}
	}
	return len(t.Habits) <= maxHabits && t.Doubt >= 0 && t.Doubt <= 1
}
