package forecast

// stair says that levels up to Level, and above the stair before it, were last in
// use at At.
type stair struct {
	Level int   `json:"level"`
	At    int64 `json:"at"`
}

// lastUsedByLevel remember when each level of demand was last in use, as a staircase: the
// higher the level, the longer ago. The lowest step is the last of the slice.
type lastUsedByLevel []stair

// maxSteps bounds the memory; beyond it two old steps become one.
const maxSteps = 24

// leaveLevels notes that levels up to level were in use until now.
func (s lastUsedByLevel) leaveLevels(level int, now int64) lastUsedByLevel {
	for len(s) > 0 && s[len(s)-1].Level <= level {
		s = s[:len(s)-1]
	}
	if len(s) > 0 { // levels above were in use, and with them this one
		now = max(now, s[len(s)-1].At)
	}
	s = append(s, stair{level, now})
	if len(s) > maxSteps {
		s = append(s[:1], s[2:]...)
	}
	return s
}

// atMost returns no more than so many steps: the newest ones.
func (s lastUsedByLevel) atMost(steps int) lastUsedByLevel { return s[max(0, len(s)-steps):] }

// usedSince returns the highest level that was in use at a second or later and is not now, 0 if there is none.
func (s lastUsedByLevel) usedSince(second int64) int {
	for _, step := range s {
		if step.At >= second {
			return step.Level
		}
	}
	return 0
}

// lastUse returns when level was last in use, 0 for never.
func (s lastUsedByLevel) lastUse(level int) int64 {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].Level >= level {
			return s[i].At
		}
	}
	return 0
}
