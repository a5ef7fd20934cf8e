package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// virtual is a Poll with a deadline in a minute, in whose pauses no time passes but its own.
func virtual() (p client.Poll, paused *[]time.Duration) {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	paused = &[]time.Duration{}
	return client.Poll{Deadline: now.Add(time.Minute), Now: func() time.Time { return now },
		Pause: func(_ context.Context, d time.Duration) error {
			*paused = append(*paused, d)
			now = now.Add(d)
			return nil
		}}, paused
}

// What may pass is looked at again, ever later, and what may not is an error at once.
func TestPollLooksAgain(t *testing.T) {
	t.Parallel()
	p, paused := virtual()
	var told []error
	p.OnBroken = func(err error) { told = append(told, err) }
	away := &client.Error{Problem: contract.NewProblem(contract.CodeUnavailable, "")}
	looks := []error{nil, away, away, away, nil, nil}
	require.NoError(t, p.Until(t.Context(), func(context.Context) (bool, error) {
		err := looks[0]
		looks = looks[1:]
		return len(looks) == 0, err
	}))
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, time.Second}, *paused)
	require.Equal(t, []error{away}, told)

	denied := &client.Error{Problem: contract.NewProblem(contract.CodePermissionDenied, "")}
	require.Equal(t, denied, p.Until(t.Context(), func(context.Context) (bool, error) { return false, denied }))
}

func TestPollEndsInTime(t *testing.T) {
	t.Parallel()
	p, paused := virtual()
	away := &client.Error{Problem: contract.NewProblem(contract.CodeUnavailable, "")}
	err := p.Until(t.Context(), func(context.Context) (bool, error) { return false, away })
	require.ErrorIs(t, err, client.ErrTimeUp)
	require.ErrorIs(t, err, away)
	sum := time.Duration(0)
	for _, d := range *paused {
		sum += d
	}
	require.Equal(t, time.Minute, sum, "the last look is at the deadline")
}

// How long there was no room is told with the request that gets it, once: not by one that stands
// for another by its key.
func TestPollTellsHowLongItAsked(t *testing.T) {
	t.Parallel()
	full := &client.Error{Problem: contract.NewProblem(contract.CodeCapacityExhausted, "")}
	for key, waited := range map[string]int64{"": 10, "nightly": 0} {
		p, _ := virtual()
		ctx := t.Context()
		if key != "" {
			ctx = client.WithIdempotencyKey(ctx, key)
		}
		answers := []error{full, full, nil, nil} // a request, two questions, and a request
		var asked []contract.AllocationCreate
		_, err := p.Allocate(ctx, contract.AllocationCreate{GPUs: 2}, func(_ context.Context, in contract.AllocationCreate,
			o client.Options) (contract.Allocation, error) {
			require.Equal(t, len(asked) == 1 || len(asked) == 2, o.DryRun)
			asked = append(asked, in)
			return contract.Allocation{}, answers[len(asked)-1]
		})
		require.NoError(t, err)
		require.Equal(t, contract.AllocationCreate{GPUs: 2}, asked[0])
		require.Equal(t, contract.AllocationCreate{GPUs: 2, WaitedSeconds: waited}, asked[3])
	}
}

// The pauses of the zero value are real, and end with the context.
func TestPollWaitsInRealTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := client.Poll{}.Until(ctx, func(context.Context) (bool, error) {
		cancel()
		return false, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, client.Poll{}.Wait(t.Context(), time.Nanosecond))
}

func TestIsTransient(t *testing.T) {
	t.Parallel()
	c, err := client.New("http://127.0.0.1:1", "", http.DefaultClient)
	require.NoError(t, err)
	_, err = c.Version(t.Context())
	require.True(t, client.IsTransient(err), "nobody listens there")
	unknown := &url.Error{Err: &net.DNSError{IsNotFound: true}}
	require.False(t, client.IsTransient(unknown), "a name that nobody has is a mistake")
	unknown.Err = &net.DNSError{IsTimeout: true}
	require.True(t, client.IsTransient(unknown))
	require.False(t, client.IsTransient(errors.New("another")))
	require.False(t, client.IsTransient(nil))
}
