package forecast

import "encoding/json"

// stair says that levels up to one, and above the stair before it, were last in use at a second. Both are packed into
// one number, of which the level takes the lower bits: many are kept.
type stair uint64

// levelBits leave 44 bits to the second: those of 2200 on the fastest clock.
const levelBits = 20

func newStair(level int, at int64) stair {
	return stair(at)<<levelBits | stair(min(level, 1<<levelBits-1))
}

func (s stair) level() int { return int(s & (1<<levelBits - 1)) }
func (s stair) at() int64  { return int64(s >> levelBits) }

// stairState is the stored form of a stair.
type stairState struct {
	Level int   `json:"level"`
	At    int64 `json:"at"`
}

// MarshalJSON writes both numbers.
func (s stair) MarshalJSON() ([]byte, error) { return json.Marshal(stairState{s.level(), s.at()}) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *stair) UnmarshalJSON(data []byte) error {
	var st stairState
	if err := json.Unmarshal(data, &st); err != nil {
		return err
	}
	if st.Level < 0 || st.At < 0 || st.At >= 1<<(64-levelBits) {
		return errState
	}
	*s = newStair(st.Level, st.At)
	return nil
}

// lastUsedByLevel remember when each level of demand was last in use, as a staircase: the
// higher the level, the longer ago. The lowest step is the last of the slice.
type lastUsedByLevel []stair

// maxSteps bounds the memory; beyond it two old steps become one.
const maxSteps = 24

// leaveLevels notes that levels up to level were in use until now.
func (s lastUsedByLevel) leaveLevels(level int, now int64) lastUsedByLevel {
	for len(s) > 0 && s[len(s)-1].level() <= level {
		s = s[:len(s)-1]
	}
	if len(s) > 0 { // levels above were in use, and with them this one
		now = max(now, s[len(s)-1].at())
	}
	s = append(s, newStair(level, now))
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
		if step.at() >= second {
			return step.level()
		}
	}
	return 0
}

// lastUse returns when level was last in use, 0 for never.
func (s lastUsedByLevel) lastUse(level int) int64 {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].level() >= level {
			return s[i].at()
		}
	}
	return 0
}
