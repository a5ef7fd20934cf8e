package evidence

import "math"

// window is how many closes a standing looks back on, and the fewest that can
// change it.
const window = 20

const (
	// margin is how clearly a demoted source must help to come back: by this share
	// of all that its last closes moved, for better or worse.
	margin = 0.1
	// chance is how many standard deviations below its own record a source that has
	// proved itself must fall before its harm is no accident. A source that is right
	// once in ten times but then saves much is often wrong 20 times in a row.
	chance = 2
)

// gainRecord says whether a source may act. It is demoted when its last 20 closes
// together did harm and, if there is an older record, that record does not make it
// an accident. It comes back when 20 closes since then together helped, clearly.
type gainRecord struct {
	Gains   []float64 `json:"gains"` // of the last closes, the newest last
	Demoted bool      `json:"demoted"`
	Since   int       `json:"since"` // closes since the standing changed, counted up to 20
	// The record that is older than Gains, decayed: how many closes, the sum of
	// their gains and of the squares of these.
	N       float64 `json:"n"`
	Sum     float64 `json:"sum"`
	Squares float64 `json:"squares"`
}

// maxGain bounds what a single close can count for, in either direction.
const maxGain = 1e4

// addGain enters what one close was worth: above 0 it helped.
func (s *gainRecord) addGain(gain float64) {
	if !areFinite(gain) {
		gain = 0
	}
	if s.Gains = append(s.Gains, clampFinite(gain, -maxGain, maxGain)); len(s.Gains) > window {
		s.rememberGain(s.Gains[0])
		s.Gains = append(s.Gains[:0], s.Gains[1:]...)
	}
	s.Since = min(window, s.Since+1)
	sum, moved := 0.0, 0.0
	for _, g := range s.Gains {
		sum += g
		moved += math.Abs(g)
	}
	switch full := len(s.Gains) == window; {
	case !s.Demoted && full && sum < 0 && !s.isAccident(sum):
		s.Demoted, s.Since = true, 0
	case s.Demoted && s.Since == window && sum > margin*moved:
		s.Demoted, s.Since = false, 0
	}
}

// rememberGain takes a close into the older record, if the source was acting.
func (s *gainRecord) rememberGain(gain float64) {
	if s.Demoted {
		return
	}
	keep := math.Exp2(-1.0 / halfLife)
	s.N = keep*s.N + 1
	s.Sum = keep*s.Sum + gain
	s.Squares = keep*s.Squares + gain*gain
}

// isAccident reports whether the older record makes the sum of a window no great
// surprise.
func (s gainRecord) isAccident(sum float64) bool {
	if s.N < window/2 {
		return false
	}
	mean := s.Sum / s.N
	spread := math.Sqrt(window * math.Max(0, s.Squares/s.N-mean*mean))
	return window*mean-sum < chance*spread
}

func (s gainRecord) isSound() bool {
	return len(s.Gains) <= window && areFinite(s.Gains...) && s.Since >= 0 && s.Since <= window &&
		areFinite(s.N, s.Sum, s.Squares) && s.N >= 0 && s.N <= most && s.Squares >= 0
}
