package forecast

import "slices"

// Where a history tells who runs a job and what it is called, how it ended, and what was submitted as one, it tells
// what comes next: what failed is mostly tried again, and a round of a search is followed by a smaller one. GPUs of
// what is likely to be followed are taken to be in use until it is: the model then predicts what comes besides, and
// does not take the follower for a rise. What comes after a job that went well is left to the model: awaited in this
// way, cron jobs cost several times as much, and services a tenth to a quarter more.

// Traits are what a history tells of a job beside its size and times. What is not known is zero.
type Traits struct {
	Class  uint32 `json:"class,omitempty"`  // a hash of who runs it and what it is called
	Array  uint32 `json:"array,omitempty"`  // a hash of what was submitted as one: an array, the pods of a Job
	Failed bool   `json:"failed,omitempty"` // it ended otherwise than it should; known at its end
}

// unit is a job that runs, or those that were submitted as one, of which some do.
type unit struct {
	Began   int64  `json:"began"`
	Class   uint32 `json:"class"`
	Array   uint32 `json:"array,omitempty"`
	Jobs    int32  `json:"jobs"`              // all of them,
	GPUs    int32  `json:"gpus"`              // and their GPUs,
	Running int32  `json:"running"`           // those in use,
	Failed  int32  `json:"failed,omitempty"`  // those of jobs that failed,
	Kept    int32  `json:"kept,omitempty"`    // and those that are taken to be in use
	Follows int32  `json:"follows,omitempty"` // GPUs of what it came after; negative if that was whole, not a failure
}

// leftover is a unit that is over, and that may be followed.
type leftover struct {
	At    int64  `json:"at"`
	Class uint32 `json:"class"`
	GPUs  int32  `json:"gpus"`
	Kept  int32  `json:"kept"`
	Jobs  uint16 `json:"jobs"`
	Why   ending `json:"why"`
}

// ending is how a unit ended.
type ending int8

const (
	failure ending = iota // more than half of it failed
	whole                 // it was more than one job, and went well
	endings
	alone = endings // it was one job, and went well
)

const (
	maxLeftovers = 5
	keptFrom     = 0.3 // the chance of being followed from which GPUs are taken to be in use
	ratioShare   = 0.1 // by which part a ratio follows
	gathering    = 60  // seconds within which all that is submitted as one comes
)

// successors are what is known of what comes after what, of one tenant class.
type successors struct {
	Units []unit                  `json:"units,omitempty"` // no more than jobs that run
	Left  [maxLeftovers]leftover  `json:"left"`            // oldest first; those not in use are zero
	After [endings]successorStats `json:"after"`
	Kept  int32                   `json:"kept"` // GPUs of all units and leftovers
}

// ending is how a unit ends that is over, or how it would if what runs of it went well.
func (u *unit) ending() ending {
	switch {
	case 2*u.Failed > u.GPUs:
		return failure
	case u.Array != 0:
		return whole
	default:
		return alone
	}
}

// submit counts a job, and returns by how many GPUs demand rises.
func (s *successors) submit(now int64, gpus int, t Traits) int {
	if t.Class == 0 {
		return gpus
	}
	u := s.unitOf(now, t)
	u.Jobs++
	u.GPUs += int32(gpus)
	u.Running += int32(gpus)
	known := min(u.Kept, int32(gpus))
	u.Kept -= known
	s.Kept -= known
	return gpus - int(known)
}

// unitOf is the unit that a job belongs to, which is made if it is new. The newest leftover of its class is followed.
func (s *successors) unitOf(now int64, t Traits) *unit {
	for i := len(s.Units) - 1; t.Array != 0 && i >= 0; i-- {
		if u := &s.Units[i]; u.Array == t.Array && u.Class == t.Class {
			return u
		}
	}
	u := unit{Began: now, Class: t.Class, Array: t.Array}
	for i, l := range slices.Backward(s.Left[:]) {
		if l.Class == t.Class {
			u.Follows, u.Kept = l.GPUs, l.Kept
			if l.Why == whole {
				u.Follows = -l.GPUs
			}
			s.After[l.Why].countFollowed(now - l.At)
			s.dropLeftover(i)
			break
		}
	}
	s.Units = append(s.Units, u)
	return &s.Units[len(s.Units)-1]
}

func (s *successors) dropLeftover(i int) {
	copy(s.Left[i:], s.Left[i+1:])
	s.Left[maxLeftovers-1] = leftover{}
}

// end counts the end of a job, and returns by how many GPUs demand falls.
func (s *successors) end(now int64, gpus int, t Traits) int {
	i := slices.IndexFunc(s.Units, func(u unit) bool { return u.has(int32(gpus), t) })
	if t.Class == 0 || i < 0 {
		return gpus
	}
	u := &s.Units[i]
	before := u.Running + u.Kept
	u.Running -= int32(gpus)
	if t.Failed {
		u.Failed += int32(gpus)
	}
	s.Kept -= u.Kept
	u.Kept = 0
	why := u.ending()
	next := s.next(why, u.GPUs)
	if next > u.Running && s.After[why].chance(0) >= keptFrom {
		u.Kept = min(before, next) - u.Running
	}
	s.Kept += u.Kept
	freed := before - u.Running - u.Kept
	if u.Running == 0 {
		freed += s.close(now, u, next)
		s.Units = slices.Delete(s.Units, i, i+1)
	}
	return int(freed)
}

// has reports whether a job with so many GPUs may be one of the unit.
func (u *unit) has(gpus int32, t Traits) bool {
	return u.Class == t.Class && u.Array == t.Array && u.Running >= gpus && (t.Array != 0 || u.GPUs == gpus)
}

// close takes it in that a unit is over, after which so many GPUs are expected, and returns how many of those that were
// taken to be in use are not any more.
func (s *successors) close(now int64, u *unit, next int32) (freed int32) {
	switch {
	case u.Follows > 0:
		s.After[failure].countRatio(float32(u.GPUs) / float32(u.Follows))
	case u.Follows < 0:
		s.After[whole].countRatio(float32(u.GPUs) / float32(-u.Follows))
	}
	if next == 0 || u.ending() == alone {
		s.Kept -= u.Kept
		return u.Kept
	}
	at := slices.IndexFunc(s.Left[:], func(l leftover) bool { return l.Class == 0 })
	if at < 0 {
		freed = s.Left[0].Kept
		s.Kept -= freed
		s.dropLeftover(0)
		at = maxLeftovers - 1
	}
	s.Left[at] = leftover{now, u.Class, u.GPUs, u.Kept, uint16(min(u.Jobs, 1<<16-1)), u.ending()}
	return freed
}

// next is how many GPUs are expected after so many.
func (s *successors) next(why ending, gpus int32) int32 {
	if why == alone {
		return 0
	}
	return int32(s.After[why].ratio()*float64(gpus) + 0.5)
}

// passTo gives up what has not been followed, and returns how many GPUs are not taken to be in use any more, and when
// they were last.
func (s *successors) passTo(now int64) (freed int, since int64) {
	for i := 0; i < maxLeftovers && s.Left[i].Class != 0; {
		l := &s.Left[i]
		if l.Kept > 0 && s.After[l.Why].chance(float64(now-l.At)) < keptFrom {
			freed, since = freed+int(l.Kept), l.At
			l.Kept = 0
		}
		if now-l.At <= longestDelay {
			i++
			continue
		}
		freed += int(l.Kept)
		s.After[l.Why].countAbandoned()
		s.dropLeftover(i)
	}
	for i := 0; s.Kept > 0 && i < len(s.Units); i++ { // one may be smaller than what it came after
		if u := &s.Units[i]; u.Kept > 0 && u.Running == u.GPUs && now > u.Began+gathering {
			freed, since = freed+int(u.Kept), u.Began
			u.Kept = 0
		}
	}
	s.Kept -= int32(freed)
	return freed, since
}

// expected appends what is taken to be in use and is not.
func (s *successors) expected(now int64) (all []awaited) {
	if s.Kept == 0 {
		return nil
	}
	for _, l := range s.Left {
		if l.Kept > 0 {
			all = append(all, s.After[l.Why].await(int(l.Kept), float64(l.Jobs)/float64(l.GPUs), float64(now-l.At)))
		}
	}
	for _, u := range s.Units {
		if u.Kept > 0 {
			all = append(all, s.After[min(u.ending(), whole)].await(int(u.Kept), float64(u.Jobs)/float64(u.GPUs), 0))
		}
	}
	return all
}

// isSound reports whether it can have come from counting.
func (s *successors) isSound(latest int64) bool {
	kept, sound := int64(s.Kept), s.Kept >= 0
	for _, u := range s.Units {
		kept -= int64(u.Kept)
		sound = sound && u.Began >= 0 && u.Began <= latest && u.Jobs >= 1 && u.Kept >= 0 &&
			u.Running >= 1 && u.Running <= u.GPUs && u.Failed >= 0 && u.Failed <= u.GPUs
	}
	for _, l := range s.Left {
		kept -= int64(l.Kept)
		sound = sound && l.At >= 0 && l.At <= latest && l.Kept >= 0 && l.Why >= 0 && l.Why < endings &&
			(l.Class == 0) == (l.GPUs == 0) && l.GPUs >= 0
	}
	for i := range s.After {
		sound = sound && s.After[i].isSound()
	}
	return sound && kept == 0
}
