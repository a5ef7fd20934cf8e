package proof_test

import (
	"github.com/anishathalye/porcupine"

	"github.com/forewarm/forewarm/contract"
)

// verb is what a client asked for.
type verb string

const (
	verbReserve  verb = "reserve"  // one GPU over one of the windows
	verbCancel   verb = "cancel"   // a reservation
	verbAllocate verb = "allocate" // one GPU now
	verbClaim    verb = "claim"    // a reservation, for a GPU now
	verbRelease  verb = "release"  // an allocation
)

const (
	// windows do not overlap, and they begin after everything that is held now has ended.
	windows = 3
	// mostThing is how many reservations and allocations one history can have.
	mostThing = linearClients*linearActs + linearNodes*linearPerNode + 1
)

// asked is the input of one operation. Things are numbered as they were made.
type asked struct {
	verb   verb
	window int // reserve
	thing  int // of the others
}

// answered is its output.
type answered struct {
	code  string // empty: it was done
	thing int    // that was made
}

// thing is a reservation or an allocation. It is a byte, since the check copies
// and compares all of them for every operation it tries.
type thing uint8

// What a thing can be. reserved counts on from the first window to the last.
const (
	absent thing = iota
	reserved
	allocated thing = 64
	over      thing = 128 // added when it has ended
)

func (t thing) isReservation() bool { return t&^over >= reserved && t&^over < allocated }
func (t thing) windowIndex() int    { return int(t&^over - reserved) }

// register is the whole pool as one object that does one thing at a time: how
// many GPUs are taken in each window and now, and by what.
type register struct {
	taken  [windows]int
	held   int
	things [mostThing]thing
}

// registerModel is the sequential specification for a pool of so many GPUs.
func registerModel(capacity int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, output any) (bool, any) {
			s := state.(register) //nolint:forcetypeassert // Init says so
			ok := s.stepRegister(capacity, input.(asked), output.(answered))
			return ok, s
		},
		Equal: func(a, b any) bool { return a.(register) == b.(register) },
	}
}

// stepRegister reports whether the register could have answered so, and makes the change.
func (s *register) stepRegister(capacity int, in asked, out answered) bool {
	switch in.verb {
	case verbReserve:
		if s.taken[in.window] == capacity {
			return out.code == contract.CodeCapacityExhausted
		}
		s.taken[in.window]++
		return out.code == "" &&
			s.addThing(out.thing, reserved+thing(in.window)) //nolint:gosec // there are few windows
	case verbAllocate:
		return s.holdGPU(capacity, out)
	case verbCancel:
		return s.things[in.thing].isReservation() && s.endThing(in.thing, out)
	case verbRelease:
		return s.things[in.thing]&^over == allocated && s.endThing(in.thing, out)
	case verbClaim:
		if t := s.things[in.thing]; !t.isReservation() || t >= over {
			return t.isReservation() && out.code == contract.CodeStateConflict
		}
		return s.holdGPU(capacity, out) && (out.code != "" || s.endThing(in.thing, answered{}))
	default:
		return false
	}
}

// holdGPU takes a GPU now, or says that there is none.
func (s *register) holdGPU(capacity int, out answered) bool {
	if s.held == capacity {
		return out.code == contract.CodeCapacityExhausted
	}
	s.held++
	return out.code == "" && s.addThing(out.thing, allocated)
}

func (s *register) addThing(i int, t thing) bool {
	if s.things[i] != absent {
		return false
	}
	s.things[i] = t
	return true
}

// endThing ends a thing and gives back what it took; once it is over it cannot end
// again.
func (s *register) endThing(i int, out answered) bool {
	t := s.things[i]
	if t >= over {
		return out.code == contract.CodeStateConflict
	}
	if s.things[i] += over; t.isReservation() {
		s.taken[t.windowIndex()]--
	} else {
		s.held--
	}
	return out.code == ""
}
