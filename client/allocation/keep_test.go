package allocation

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/clienttest"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// start starts an installation, and returns its pool of eight GPUs as a program sees it.
func start(t *testing.T, daemons bool) (*clienttest.Installation, session.Server) {
	t.Helper()
	i := clienttest.Start()
	t.Cleanup(i.Close)
	if daemons {
		i.StartDaemons()
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	api, err := client.New(i.URL, i.Key, &http.Client{Transport: transport})
	require.NoError(t, err)
	return i, session.Server{API: api, HTTP: &http.Client{Transport: transport}}
}

// ask is a request for GPUs of the pool.
func ask(gpus int) Request {
	return Request{AllocationCreate: contract.AllocationCreate{Pool: "lab", GPUs: gpus, LeaseSeconds: 3600}}
}

// hold holds GPUs with a lease that only the test keeps, by a clock that only the test moves.
func hold(t *testing.T, server session.Server, r Request) (h *Held, now *time.Time) {
	t.Helper()
	h, err := acquire(t.Context(), server, r)
	require.NoError(t, err)
	h.stop = func() {}
	close(h.kept)
	now = new(time.Time)
	*now = time.Now()
	h.poll.Now = func() time.Time { return *now }
	h.poll.Pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return h, now
}

func leaseUntil(t *testing.T, api *client.Client, h *Held) time.Time {
	t.Helper()
	got, err := api.Allocation(t.Context(), h.Allocation().ID)
	require.NoError(t, err)
	return got.LeaseUntil
}

// The lease is extended to its first length when half of it is over, and not before.
func TestALeaseIsKept(t *testing.T) {
	t.Parallel()
	_, server := start(t, false)
	h, now := hold(t, server, ask(2))
	first := leaseUntil(t, server.API, h)
	pause, err := h.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Minute, pause)
	*now = now.Add(29 * time.Minute)
	_, err = h.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, leaseUntil(t, server.API, h))
	for range 3 {
		*now = now.Add(31 * time.Minute)
		_, err = h.step(t.Context())
		require.NoError(t, err)
		*now = now.Add(10 * time.Minute)
		_, err = h.step(t.Context())
		require.NoError(t, err)
	}
	later := leaseUntil(t, server.API, h)
	require.InDelta(t, now.Add(50*time.Minute).Unix(), later.Unix(), 30)
	require.Equal(t, later, h.Allocation().LeaseUntil)
	require.NotNil(t, h.Allocation().Access, "the answer to an extension has none, and takes none away")
}

func TestAFixedLeaseIsLeft(t *testing.T) {
	t.Parallel()
	_, server := start(t, false)
	r := ask(2)
	r.FixedLease = true
	h, now := hold(t, server, r)
	first := leaseUntil(t, server.API, h)
	*now = now.Add(59*time.Minute + 59*time.Second)
	pause, err := h.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Second, pause)
	require.Equal(t, first, leaseUntil(t, server.API, h))
}

// What cannot be extended, since a later hour is promised to others, is held to the end of its lease.
func TestARefusedExtensionIsAskedForLater(t *testing.T) {
	t.Parallel()
	_, server := start(t, false)
	h, now := hold(t, server, ask(8))
	from := leaseUntil(t, server.API, h).Add(time.Minute)
	promised, err := server.API.Reserve(t.Context(), contract.ReservationCreate{Pool: "lab", GPUs: 8, Start: from,
		End: from.Add(time.Hour)}, client.Options{})
	require.NoError(t, err)
	first := leaseUntil(t, server.API, h)
	*now = now.Add(31 * time.Minute)
	_, err = h.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, leaseUntil(t, server.API, h))
	require.Equal(t, now.Add(h.leaseEnd().Sub(*now)/2), h.extendAt, "when half of the rest is over")
	_, err = server.API.CancelReservation(t.Context(), promised.ID)
	require.NoError(t, err)
	*now = now.Add(16 * time.Minute)
	over := time.Hour - h.leaseEnd().Sub(*now) // 47 minutes, and what the machine needed
	require.GreaterOrEqual(t, over, 47*time.Minute)
	_, err = h.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, first.Add(over.Truncate(time.Second)), leaseUntil(t, server.API, h))
}

// Whoever else ends the allocation is noticed, and then nothing is left to release.
func TestWhatEndsIsLost(t *testing.T) {
	t.Parallel()
	_, server := start(t, false)
	h, err := Acquire(t.Context(), server, ask(2))
	require.NoError(t, err)
	_, err = server.API.Release(t.Context(), h.Allocation().ID)
	require.NoError(t, err)
	require.NoError(t, h.Release(t.Context()), "whether or not that was noticed yet")

	h, _ = hold(t, server, ask(2))
	h.kept = make(chan struct{})
	_, err = server.API.Release(t.Context(), h.Allocation().ID)
	require.NoError(t, err)
	h.keepLease(t.Context())
	<-h.Lost()
	var ended *EndedError
	require.ErrorAs(t, h.Err(), &ended)
	require.Equal(t, "released", ended.Allocation.State)
	require.Regexp(t, `^alc_\w+ is released \(asked\)$`, ended.Error())
	require.NoError(t, h.Release(t.Context()))
}

// A server that is away is looked for until the lease must be over.
func TestAServerThatStaysAway(t *testing.T) {
	t.Parallel()
	i := clienttest.Start()
	h, now := hold(t, session.Server{API: i.Client()}, ask(2))
	i.Close()
	*now = now.Add(59 * time.Minute)
	_, err := h.step(t.Context())
	require.NoError(t, err)
	*now = now.Add(time.Minute + time.Second)
	_, err = h.step(t.Context())
	require.ErrorContains(t, err, "the lease is over, and was not extended: ")
}

// endsAfter ends a context when a POST was answered.
type endsAfter struct {
	next client.Doer
	end  func()
}

func (d endsAfter) Do(r *http.Request) (*http.Response, error) {
	defer func() {
		if r.Method == http.MethodPost {
			d.end()
		}
	}()
	return d.next.Do(r)
}

// Who is interrupted while nodes boot, or a pool is full, leaves nothing behind.
func TestAcquireIsInterrupted(t *testing.T) {
	t.Parallel()
	i, server := start(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	api, err := client.New(i.URL, i.Key, endsAfter{server.HTTP, cancel})
	require.NoError(t, err)
	_, err = Acquire(ctx, session.Server{API: api}, ask(8))
	require.ErrorIs(t, err, context.Canceled)
	requireNothingHeld(t, server.API)

	h, err := Acquire(t.Context(), server, ask(8))
	require.NoError(t, err)
	ctx, cancel = context.WithCancel(t.Context())
	r := ask(8)
	r.Poll.Pause = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	_, err = Acquire(ctx, server, r)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, h.Release(t.Context()))
	requireNothingHeld(t, server.API)
}

func requireNothingHeld(t *testing.T, api *client.Client) {
	t.Helper()
	held, err := client.All(api.Allocations(t.Context(), client.Filter{}))
	require.NoError(t, err)
	require.Empty(t, held)
}

// failsOnce answers one request with a problem of its own, when it is told to.
type failsOnce struct {
	next client.Doer
	fail atomic.Bool
}

func (d *failsOnce) Do(r *http.Request) (*http.Response, error) {
	if d.fail.CompareAndSwap(true, false) {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: io.EOF}
	}
	return d.next.Do(r)
}

// A release that a server did not answer is repeated, however late the GPUs may have been.
func TestReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	i, server := start(t, false)
	broken := &failsOnce{next: server.HTTP}
	api, err := client.New(i.URL, i.Key, broken)
	require.NoError(t, err)
	r := ask(1)
	r.Poll.Deadline = time.Now().Add(time.Minute)
	h, now := hold(t, session.Server{API: api}, r)
	*now = now.Add(time.Hour)
	broken.fail.Store(true)
	require.NoError(t, h.Release(t.Context()))
	require.False(t, broken.fail.Load())
	require.NoError(t, h.Release(t.Context()), "there is nothing left to give")
	requireNothingHeld(t, server.API)
}

// At its deadline a request ends with the reason.
func TestAcquireIsTooLate(t *testing.T) {
	t.Parallel()
	_, server := start(t, false)
	h, err := Acquire(t.Context(), server, ask(8))
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Release(context.Background())) }()
	r := ask(1)
	r.Poll.Deadline = time.Now()
	_, err = Acquire(t.Context(), server, r)
	require.ErrorIs(t, err, client.ErrTimeUp)
	require.True(t, client.IsNoRoom(err))
	r.GPUs = 100
	_, err = Acquire(t.Context(), server, r)
	require.ErrorContains(t, err, "allocating GPUs: ", "what never fits is not waited for")
	require.NotErrorIs(t, err, client.ErrTimeUp)
}
