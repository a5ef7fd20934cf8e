package proof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// The pool and the people of a recorded history.
const (
	linearNodes   = 2
	linearPerNode = 2
	linearClients = 8
	linearActs    = 40 // of each client
)

// history is what several clients did and were told, and when.
type history struct {
	mu     sync.Mutex
	begun  time.Time
	first  time.Time // start of the first window
	done   []porcupine.Operation
	things map[string]int // by id
	ids    []string
	faults []error
}

// recordHistory has clients ask at the same time, each of a server of its own.
func recordHistory(ctx context.Context, s *site, seed uint64) *history {
	h := &history{begun: time.Now(), first: time.Now().UTC().Truncate(time.Hour).Add(48 * time.Hour),
		things: map[string]int{}}
	var wait sync.WaitGroup
	for i := range linearClients {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // a test's chance is to be repeatable
			for range linearActs {
				h.recordStep(ctx, i, s.clients[i%len(s.clients)], r)
			}
		})
	}
	wait.Wait()
	return h
}

// recordStep chooses something, asks for it and notes the answer.
func (h *history) recordStep(ctx context.Context, who int, c *client.Client, r *rand.Rand) {
	in, id := h.chooseRequest(r)
	call := time.Since(h.begun)
	made, err := repeatUntilAnswered(ctx, func(ctx context.Context) (string,
		error) {
		return h.sendRequest(ctx, c, in, id)
	})
	back := time.Since(h.begun)
	out := answered{}
	var problem *client.Error
	switch {
	case errors.As(err, &problem):
		out.code = problem.Problem.Code
	case err != nil:
		out.code = "no answer"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && made != "" {
		out.thing = len(h.ids)
		h.things[made], h.ids = out.thing, append(h.ids, made)
	}
	if out.code != "" && out.code != contract.CodeCapacityExhausted && out.code != contract.CodeStateConflict {
		h.faults = append(h.faults, fmt.Errorf("%v %s: %w", in, id, err))
	}
	h.done = append(h.done, porcupine.Operation{ClientId: who, Input: in, Call: call.Nanoseconds(), Output: out,
		Return: back.Nanoseconds()})
}

// chooseRequest picks what to do. Things made lately are chosen more often, by several
// clients at once, and some that are over are chosen again.
func (h *history) chooseRequest(r *rand.Rand) (in asked, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in = asked{verb: []verb{verbReserve, verbReserve, verbAllocate, verbCancel, verbClaim, verbRelease}[r.IntN(6)],
		window: r.IntN(windows)}
	if in.verb == verbReserve || in.verb == verbAllocate {
		return in, ""
	}
	kind := "rsv"
	if in.verb == verbRelease {
		kind = "alc"
	}
	var fit []string
	for _, id := range h.ids {
		if id[:3] == kind {
			fit = append(fit, id)
		}
	}
	if len(fit) == 0 {
		return asked{verb: verbReserve, window: in.window}, ""
	}
	back := min(r.IntN(len(fit)), r.IntN(8))
	id = fit[len(fit)-1-back]
	in.window, in.thing = 0, h.things[id]
	return in, id
}

// sendRequest sends the request and returns the id of what it made, if anything.
func (h *history) sendRequest(ctx context.Context, c *client.Client, in asked, id string) (string, error) {
	const lease = 3600 // ends long before the first window begins
	switch in.verb {
	case verbReserve:
		start := h.first.Add(time.Duration(in.window) * time.Hour)
		v, err := c.Reserve(ctx, contract.ReservationCreate{Pool: "lab", GPUs: 1, Start: start,
			End: start.Add(time.Hour)}, client.Options{})
		return v.ID, err
	case verbAllocate:
		a, err := c.Allocate(ctx, contract.AllocationCreate{Pool: "lab", GPUs: 1, LeaseSeconds: lease},
			client.Options{})
		return a.ID, err
	case verbClaim:
		a, err := c.Claim(ctx, id, contract.Claim{LeaseSeconds: lease}, client.Options{})
		return a.ID, err
	case verbCancel:
		_, err := c.CancelReservation(ctx, id)
		return "", err
	default:
		_, err := c.Release(ctx, id)
		return "", err
	}
}

// testLinearizable records histories at a site and checks that each could have been
// told by a pool that does one thing at a time.
func testLinearizable(t *testing.T, url string, servers int) {
	t.Helper()
	s := newSite(t, url, want{servers: servers, nodes: linearNodes, perNode: linearPerNode, quota: 1000})
	s.warmPool(linearNodes)
	h := recordHistory(t.Context(), s, 7)
	require.Empty(t, h.faults)
	h.requireVariety(t)
	require.True(t, porcupine.CheckOperations(registerModel(linearNodes*linearPerNode), h.done))
	s.requireSound()
	for name, plant := range sabotage {
		t.Run(name, func(t *testing.T) {
			broken := plant(t, h)
			require.False(t, porcupine.CheckOperations(registerModel(linearNodes*linearPerNode), broken),
				"the check cannot fail")
		})
	}
}

// requireVariety: a history in which nothing was contended would prove nothing.
func (h *history) requireVariety(t *testing.T) {
	t.Helper()
	seen := map[string]int{}
	for _, op := range h.done {
		seen[string(op.Input.(asked).verb)+" "+op.Output.(answered).code]++ //nolint:forcetypeassert // act wrote them
	}
	t.Logf("%v", seen)
	for _, outcome := range []string{"reserve ", "reserve " + contract.CodeCapacityExhausted, "allocate ",
		"allocate " + contract.CodeCapacityExhausted, "claim ",
		"cancel ", "cancel " + contract.CodeStateConflict, "release ", "release " + contract.CodeStateConflict} {
		require.NotZero(t, seen[outcome], "no %q in %v", outcome, seen)
	}
}

// sabotage are lies put into a true history.
var sabotage = map[string]func(*testing.T, *history) []porcupine.Operation{
	// After everything, a GPU too many is reserved in one window.
	"one too many": func(_ *testing.T, h *history) []porcupine.Operation {
		ops := append([]porcupine.Operation{}, h.done...)
		at := time.Since(h.begun).Nanoseconds()
		for i := range linearNodes*linearPerNode + 1 {
			at += 2
			ops = append(ops, porcupine.Operation{Input: asked{verb: verbReserve},
				Output: answered{thing: mostThing - 1 - i}, Call: at, Return: at + 1})
		}
		return ops
	},
	// Somebody was told that a cancelled reservation was cancelled again.
	"cancelled twice": func(t *testing.T, h *history) []porcupine.Operation {
		return h.withAnswer(t, verbCancel, contract.CodeStateConflict, answered{})
	},
	// Somebody was told that there is no GPU long after all were given back.
	"refused without need": func(_ *testing.T, h *history) []porcupine.Operation {
		at := time.Since(h.begun).Nanoseconds()
		return append(append([]porcupine.Operation{}, h.withRelease(at)...), porcupine.Operation{
			Input: asked{verb: verbAllocate}, Output: answered{code: contract.CodeCapacityExhausted},
			Call: at + 1_000_000, Return: at + 1_000_001,
		})
	},
}

// withAnswer gives the first operation of the verb and code another answer.
func (h *history) withAnswer(t *testing.T, v verb, code string, out answered) []porcupine.Operation {
	t.Helper()
	ops := append([]porcupine.Operation{}, h.done...)
	for i, op := range ops {
		if op.Input.(asked).verb == v && op.Output.(answered).code == code { //nolint:forcetypeassert // act wrote them
			ops[i].Output = out
			return ops
		}
	}
	require.Fail(t, "nothing to change")
	return nil
}

// withRelease is the history with everything that is held given back after it.
func (h *history) withRelease(at int64) []porcupine.Operation {
	over := map[int]bool{}
	for _, op := range h.done {
		in, out := op.Input.(asked), op.Output.(answered) //nolint:forcetypeassert // act wrote them
		if in.verb == verbRelease && out.code == "" {
			over[in.thing] = true
		}
	}
	ops := append([]porcupine.Operation{}, h.done...)
	for i, id := range h.ids {
		if id[:3] == "alc" && !over[i] {
			at += 2
			ops = append(ops, porcupine.Operation{Input: asked{verb: verbRelease, thing: i}, Call: at,
				Output: answered{}, Return: at + 1})
		}
	}
	return ops
}

// TestLinearizableSQLite: one server, SQLite.
func TestLinearizableSQLite(t *testing.T) {
	t.Parallel()
	testLinearizable(t, "sqlite://:memory:", 1)
}
