package main_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// loadPool is the pool that the load books in.
const loadPool = "load"

// load is several people who book, claim, extend, cancel and release without
// pause, repeat every request until it is answered, and remember what they were
// told.
type load struct {
	api *client.Client

	mu       sync.Mutex
	made     map[string]string // name → id of what was acknowledged
	refused  map[string]bool   // names that were refused for good
	ended    map[string]bool   // ids whose end was acknowledged
	faults   []error           // answers that nothing explains
	answered int
}

func newLoad(api *client.Client) *load {
	return &load{api: api, made: map[string]string{}, refused: map[string]bool{}, ended: map[string]bool{}}
}

// enough is more bookings than nearly none, which would prove nothing.
const enough = 21

// startPeople starts the people. The function it returns waits until they have booked enough, tells them to finish what
// they are asking and waits until they have.
func (l *load) startPeople(ctx context.Context, people int, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	for i := range people {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // a test's chance is to be repeatable
			for n := 0; ctx.Err() == nil; n++ {
				l.makeBooking(ctx, r, fmt.Sprintf("person-%d-%d", i, n))
				pauseAtRandom(ctx, r, 2500*time.Millisecond) // now and then nobody is there, and machines go
			}
		})
	}
	return func() {
		for limit := time.Now().Add(patience); l.countMade() < enough && time.Now().Before(limit); {
			<-time.After(50 * time.Millisecond)
		}
		cancel()
		wait.Wait()
	}
}

func (l *load) countMade() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.made)
}

// makeBooking is one booking from request to end.
func (l *load) makeBooking(ctx context.Context, r *rand.Rand, name string) {
	if r.IntN(3) > 0 {
		l.allocateGPUs(ctx, r, name)
	} else {
		l.reserveGPUs(ctx, r, name)
	}
}

func (l *load) allocateGPUs(ctx context.Context, r *rand.Rand, name string) {
	in := contract.AllocationCreate{Pool: loadPool, GPUs: 1 + r.IntN(2), LeaseSeconds: int64(2 + r.IntN(6)), Name: name}
	a, ok := askUntilAnswered(ctx, l, name, func(ctx context.Context) (contract.Allocation, error) {
		return l.api.Allocate(ctx, in, client.Options{})
	})
	if !l.noteAcknowledged(name, a.ID, ok) {
		return
	}
	pauseAtRandom(ctx, r, 600*time.Millisecond)
	if r.IntN(4) == 0 {
		_, _ = askUntilAnswered(ctx, l, name+"-extend", func(ctx context.Context) (contract.Allocation, error) {
			return l.api.Extend(ctx, a.ID, time.Second, client.Options{})
		})
	}
	if r.IntN(6) > 0 { // the others are left to the end of their lease
		l.releaseGPUs(ctx, a.ID)
	}
}

func (l *load) releaseGPUs(ctx context.Context, id string) {
	if _, ok := askUntilAnswered(ctx, l, id+"-release",
		func(ctx context.Context) (contract.Allocation, error) { return l.api.Release(ctx, id) }); ok {
		l.noteEnded(id)
	}
}

func (l *load) reserveGPUs(ctx context.Context, r *rand.Rand, name string) {
	start := time.Now().Add(time.Duration(1+r.IntN(3)) * time.Second)
	in := contract.ReservationCreate{Pool: loadPool, GPUs: 1 + r.IntN(2), Start: start,
		End: start.Add(time.Duration(2+r.IntN(4)) * time.Second), Name: name}
	v, ok := askUntilAnswered(ctx, l, name, func(ctx context.Context) (contract.Reservation, error) {
		return l.api.Reserve(ctx, in, client.Options{})
	})
	if !l.noteAcknowledged(name, v.ID, ok) {
		return
	}
	pauseAtRandom(ctx, r, time.Second)
	switch r.IntN(3) {
	case 0:
		if _, ok := askUntilAnswered(ctx, l, name+"-cancel",
			func(ctx context.Context) (contract.Reservation, error) { return l.api.CancelReservation(ctx, v.ID) }); ok {
			l.noteEnded(v.ID)
		}
	case 1:
		claim := name + "-claim"
		a, ok := askUntilAnswered(ctx, l, claim, func(ctx context.Context) (contract.Allocation, error) {
			return l.api.Claim(ctx, v.ID, contract.Claim{LeaseSeconds: 2, Name: claim}, client.Options{})
		})
		if l.noteAcknowledged(claim, a.ID, ok) {
			pauseAtRandom(ctx, r, 300*time.Millisecond)
			l.releaseGPUs(ctx, a.ID)
		}
	}
}

func pauseAtRandom(ctx context.Context, r *rand.Rand, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(r.Int64N(int64(most)))):
	}
}

// askUntilAnswered repeats one request under one key until the server has answered it,
// whatever happens to the server meanwhile. It is not ended by ctx: what was
// asked must be answered before the world is checked.
func askUntilAnswered[T any](ctx context.Context, l *load, key string, send func(context.Context) (T, error)) (T,
	bool) {
	call := client.WithIdempotencyKey(context.WithoutCancel(ctx), key)
	for limit := time.Now().Add(patience); ; {
		out, err := send(call)
		var problem *client.Error
		switch {
		case err == nil:
			l.countAnswer(nil)
			return out, true
		case errors.As(err, &problem) && problem.Problem.Status < http.StatusInternalServerError &&
			problem.Problem.Status != http.StatusTooManyRequests:
			l.countAnswer(unexplainedFault(problem))
			return out, false
		case time.Now().After(limit):
			l.countAnswer(fmt.Errorf("%s was never answered: %w", key, err))
			return out, false
		}
		<-time.After(50 * time.Millisecond)
	}
}

// unexplainedFault is an answer that this load cannot cause.
func unexplainedFault(e *client.Error) error {
	switch e.Problem.Code {
	case contract.CodeCapacityExhausted, contract.CodeStateConflict, contract.CodeQuotaExceeded,
		contract.CodeWindowInPast, contract.CodeLeadTimeTooShort,
		contract.CodeClaimTooEarly, contract.CodeClaimTooLong:
		return nil
	}
	return e
}

func (l *load) countAnswer(fault error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered++
	if fault != nil {
		l.faults = append(l.faults, fault)
	}
}

func (l *load) noteAcknowledged(name, id string, ok bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok {
		l.made[name] = id
	} else {
		l.refused[name] = true
	}
	return ok
}

func (l *load) noteEnded(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[id] = true
}

// booking is an allocation or a reservation as a list shows it.
type booking struct{ id, name, state string }

func (l *load) listBookings(t *testing.T) []booking {
	t.Helper()
	allocations, err := client.All(l.api.Allocations(t.Context(), client.Filter{All: true, PageSize: 200}))
	require.NoError(t, err)
	reservations, err := client.All(l.api.Reservations(t.Context(), client.Filter{All: true, PageSize: 200}))
	require.NoError(t, err)
	var all []booking
	for _, a := range allocations {
		all = append(all, booking{a.ID, a.Name, a.State})
	}
	for _, r := range reservations {
		all = append(all, booking{r.ID, r.Name, r.State})
	}
	return all
}

// checkBookings compares what people were told with what there is: everything that was
// acknowledged is there exactly once, and nothing else.
func (l *load) checkBookings(t *testing.T) {
	t.Helper()
	require.Empty(t, l.faults)
	require.GreaterOrEqual(t, len(l.made), enough)
	seen := map[string]string{}
	for _, b := range l.listBookings(t) {
		before, twice := seen[b.name]
		assert.False(t, twice, "%s is there as %s and as %s", b.name, before, b.id)
		seen[b.name] = b.id
		assert.Equal(t, l.made[b.name], b.id, "%s was answered with this id", b.name)
		if l.ended[b.id] {
			assert.Contains(t, []string{"released", "cancelled", "claimed", "expired"}, b.state,
				"%s of %s, whose end was acknowledged", b.id, b.name)
		}
	}
	for name, id := range l.made {
		assert.Equal(t, id, seen[name], "%s was acknowledged", name)
	}
	t.Logf("%d requests answered, %d bookings made, %d refused", l.answered, len(l.made), len(l.refused))
}
