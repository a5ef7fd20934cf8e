package evidence

import (
	"sort"
	"time"
)

// supply remembers since when each level of GPUs has been supplied to a tenant
// without a break, and so how long a job that needs the level has still to wait.
type supply struct {
	boot  time.Duration
	level int
	dips  []dip // of growing time and level
}

// dip says that the supply was at a level until an instant, and never as low
// since.
type dip struct {
	Until time.Time `json:"until"`
	Level int       `json:"level"`
}

// setLevel changes the supply.
func (s *supply) setLevel(now time.Time, level int) {
	if level == s.level {
		return
	}
	if level > s.level {
		n := len(s.dips)
		for n > 0 && s.dips[n-1].Level >= s.level {
			n--
		}
		s.dips = append(s.dips[:n], dip{now, s.level})
	}
	s.level = level
	s.forgetDips(now)
}

// forgetDips drops dips whose levels have booted since.
func (s *supply) forgetDips(now time.Time) {
	old := 0
	for old < len(s.dips) && !s.dips[old].Until.Add(s.boot).After(now) {
		old++
	}
	s.dips = append(s.dips[:0], s.dips[old:]...)
}

// bootLeft returns how long a job that needs the GPUs up to level has to wait: what is
// left of the boot that began when the level was last supplied anew.
func (s *supply) bootLeft(now time.Time, level int) time.Duration {
	if level > s.level {
		return s.boot
	}
	i := sort.Search(len(s.dips), func(i int) bool { return s.dips[i].Level >= level })
	if i == 0 {
		return 0
	}
	return max(0, s.dips[i-1].Until.Add(s.boot).Sub(now))
}
