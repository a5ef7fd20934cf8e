package exec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// world is the provider that the test's script speaks for: one file, which the
// script and the test change under a lock.
type world struct{ folder string }

type state struct {
	Now      time.Time
	Machines []machine
	Faults   []fault
	Lag      time.Duration
	Stock    int // how many may stand at once
}

type machine struct {
	ID, Token, Type, Owner, Node           string
	Born, Deleted, Ended, Expires, Reclaim time.Time
}

type fault struct {
	Verb, Effect string
	Times        int // below 0: always
}

// The effects of faults.
const (
	dieAfter   = "die_after"  // done, and killed before it can say so
	dieBefore  = "die_before" // exit code 1, no document
	lie        = "lie"        // nothing done, success claimed
	garble     = "garble"     // one row of a list makes no sense
	transient  = "transient"
	throttled  = "throttled"
	noCapacity = "capacity"
)

const (
	boot        = 40 * time.Second
	terminating = 10 * time.Second
	warning     = 30 * time.Second
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) world {
	w := world{t.TempDir()}
	w.updateState(func(s *state) { s.Now, s.Stock = start, 100 })
	return w
}

// updateState is the one way to the state. It panics: half of its callers are a
// script, whose exit code then says that it failed.
func (w world) updateState(do func(*state)) {
	lock, err := os.OpenFile(filepath.Join(w.folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	panicOn(err)
	defer lock.Close()
	panicOn(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	var s state
	path := filepath.Join(w.folder, "state.json")
	if data, err := os.ReadFile(path); err == nil {
		panicOn(json.Unmarshal(data, &s))
	}
	do(&s)
	data, err := json.Marshal(s)
	panicOn(err)
	panicOn(os.WriteFile(path, data, 0o600))
}

func panicOn(err error) {
	if err != nil {
		panic(err)
	}
}

func (w world) injectFaults(faults ...fault) {
	w.updateState(func(s *state) { s.Faults = append(s.Faults, faults...) })
}

func (w world) advanceClock(d time.Duration) { w.updateState(func(s *state) { s.Now = s.Now.Add(d) }) }

// TestMain lets this binary be the script: a start takes milliseconds, where an
// interpreter takes many.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "script" {
		world{os.Args[2]}.serveVerb(os.Args[3])
		return
	}
	os.Exit(m.Run())
}

type object = map[string]any

// asked is the question, as far as this script needs it.
type asked struct {
	Version int
	Verb    string
	Token   string
	ID      string
	Until   time.Time
	Spec    struct {
		Type, Region, Owner string
		NodeID              string    `json:"node_id"`
		ExpiresAt           time.Time `json:"expires_at"`
	}
}

// serveVerb is the script: one question, one answer.
func (w world) serveVerb(verb string) {
	var q asked
	panicOn(json.NewDecoder(os.Stdin).Decode(&q))
	if q.Version != 1 || q.Verb != verb {
		panic(fmt.Sprintf("asked for %s in version %d as %s", q.Verb, q.Version, verb))
	}
	var said any
	var effect string
	w.updateState(func(s *state) {
		effect = s.takeFault(verb)
		said = s.answerQuestion(q, effect)
	})
	switch effect {
	case dieAfter:
		panicOn(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	case dieBefore:
		fmt.Fprintln(os.Stderr, "injected: died before")
		os.Exit(1)
	}
	panicOn(json.NewEncoder(os.Stdout).Encode(said))
}

func (s *state) answerQuestion(q asked, effect string) any {
	switch effect {
	case dieBefore, lie:
		return object{}
	case transient, throttled, noCapacity:
		return object{"error": object{"kind": effect, "message": "injected", "retry_after_seconds": 3}}
	}
	switch q.Verb {
	case "create":
		return s.createMachine(machine{Token: q.Token, Type: q.Spec.Type, Owner: q.Spec.Owner, Node: q.Spec.NodeID,
			Expires: q.Spec.ExpiresAt})
	case "get":
		return s.getMachine(q.ID)
	case "list":
		return s.listMachines(effect == garble)
	case "delete":
		return s.deleteMachine(q.ID)
	default:
		return s.renewMachine(q.ID, q.Until)
	}
}

// takeFault returns the effect of the first fault that waits for the verb.
func (s *state) takeFault(verb string) string {
	for i, f := range s.Faults {
		if f.Verb == verb && f.Times != 0 {
			s.Faults[i].Times--
			return f.Effect
		}
	}
	return ""
}

func refusalObject(kind, message string) any {
	return object{"error": object{"kind": kind, "message": message}}
}

func (s *state) createMachine(asked machine) any {
	for _, m := range s.Machines {
		switch {
		case m.Token != asked.Token:
		case m.Type != asked.Type || m.Owner != asked.Owner || m.Node != asked.Node:
			return refusalObject("bad_spec", "the token is of another machine")
		default:
			return object{"instance": m.showAt(s.Now)}
		}
	}
	if asked.Type != "big" && asked.Type != "small" {
		return refusalObject("bad_spec", "no such type")
	}
	if s.countLive() >= s.Stock {
		return refusalObject("capacity", "full")
	}
	asked.ID, asked.Born = fmt.Sprint("m-", len(s.Machines)), s.Now
	s.Machines = append(s.Machines, asked)
	return object{"instance": asked.showAt(s.Now)}
}

func (s *state) countLive() int {
	n := 0
	for _, m := range s.Machines {
		if m.endedAt(s.Now).IsZero() {
			n++
		}
	}
	return n
}

func (s *state) findMachine(id string) *machine {
	if i := slices.IndexFunc(s.Machines, func(m machine) bool { return m.ID == id }); i >= 0 {
		return &s.Machines[i]
	}
	return nil
}

func (s *state) getMachine(id string) any {
	if m := s.findMachine(id); m != nil {
		return object{"instance": m.showAt(s.Now)}
	}
	return refusalObject("not_found", "no such machine")
}

func (s *state) listMachines(garbled bool) any {
	then := s.Now.Add(-s.Lag)
	rows := []object{}
	for _, m := range s.Machines {
		if !m.Born.After(then) {
			rows = append(rows, m.showAt(then))
		}
	}
	if garbled && len(rows) > 0 {
		rows[len(rows)-1]["phase"] = "confused"
	}
	return object{"instances": rows, "complete": true}
}

func (s *state) deleteMachine(id string) any {
	if m := s.findMachine(id); m != nil && m.Deleted.IsZero() {
		m.Deleted, m.Ended = s.Now, s.Now.Add(terminating)
	}
	return object{}
}

func (s *state) renewMachine(id string, until time.Time) any {
	m := s.findMachine(id)
	if m == nil || !m.endedAt(s.Now).IsZero() {
		return refusalObject("not_found", "no such machine")
	}
	if until.After(m.Expires) {
		m.Expires = until
	}
	return object{}
}

// endedAt is when the machine ended, zero while it stands.
func (m machine) endedAt(now time.Time) time.Time {
	for _, at := range []time.Time{m.Ended, m.Reclaim, m.Expires} {
		if !at.IsZero() && !now.Before(at) {
			return at
		}
	}
	return time.Time{}
}

func (m machine) showAt(now time.Time) object {
	phase := "booting"
	shown := object{"id": m.ID, "token": m.Token, "owner": m.Owner, "node_id": m.Node, "type": m.Type,
		"created_at": m.Born}
	switch {
	case !m.endedAt(now).IsZero():
		phase = "terminated"
		shown["ended_at"] = m.endedAt(now)
	case !m.Deleted.IsZero() && !now.Before(m.Deleted):
		phase = "terminating"
	case !now.Before(m.Born.Add(boot)):
		phase = "running"
		shown["address"] = m.ID + ".test.invalid"
	}
	if !m.Reclaim.IsZero() && phase != "terminated" {
		shown["notice"] = object{"kind": "interruption", "at": m.Reclaim, "message": "wanted back"}
	}
	devices := []object{}
	for i := range map[string]int{"big": 8, "small": 1}[m.Type] {
		devices = append(devices, object{"uuid": fmt.Sprintf("GPU-%s-%d", m.ID, i), "index": i, "model": "h100",
			"memory_mib": 81_920})
	}
	shown["phase"], shown["devices"] = phase, devices
	return shown
}

// createForeign puts a machine there that somebody else made by hand.
func (w world) createForeign() func() bool {
	w.updateState(func(s *state) { s.Machines = append(s.Machines, machine{ID: "theirs", Type: "big", Born: s.Now}) })
	return func() (stands bool) {
		w.updateState(func(s *state) { stands = s.findMachine("theirs").Deleted.IsZero() })
		return stands
	}
}

func ownExecutable(t *testing.T) string {
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}
