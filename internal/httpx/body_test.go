package httpx_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/httpx"
)

// Whatever the reader's pace and the limit, the data is whole or the error typed.
func TestReadBody(t *testing.T) {
	t.Parallel()
	paces := []func(io.Reader) io.Reader{
		func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader,
	}
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "data")
		limit := rapid.Int64Range(-1, 2000).Draw(t, "limit")
		pace := rapid.SampledFrom(paces).Draw(t, "pace")
		got, err := httpx.ReadBody(pace(bytes.NewReader(data)), limit)
		if int64(len(data)) <= max(limit, 0) {
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
			return
		}
		var tooLarge *httpx.TooLargeError
		require.ErrorAs(t, err, &tooLarge)
		require.Equal(t, max(limit, 0), tooLarge.Limit)
		require.Nil(t, got)
	})
}

func TestReadBodyPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := httpx.ReadBody(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 10)
	require.ErrorIs(t, err, broken)
	got, err := httpx.ReadBody(strings.NewReader("abc"), math.MaxInt64)
	require.NoError(t, err)
	require.Equal(t, "abc", string(got))
}

func TestLimitedBodyStaysBrokenAndCloses(t *testing.T) {
	t.Parallel()
	inner := &closer{Reader: strings.NewReader("abcdef")}
	body := httpx.LimitBody(inner, 3)
	for range 2 {
		var tooLarge *httpx.TooLargeError
		_, err := io.ReadAll(body)
		require.ErrorAs(t, err, &tooLarge)
	}
	require.NoError(t, body.Close())
	require.True(t, inner.closed)
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempt, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		require.Equal(t, want*time.Second, httpx.Backoff(attempt, time.Second, 10*time.Second, nil), "attempt %d",
			attempt)
	}
	require.Equal(t, time.Second, httpx.Backoff(-5, time.Second, time.Minute, nil))
	require.Equal(t, time.Second, httpx.Backoff(0, time.Minute, time.Second, nil))
	require.Equal(t, time.Duration(math.MaxInt64), httpx.Backoff(math.MaxInt, 1, math.MaxInt64, nil))
	require.Zero(t, httpx.Backoff(3, 0, time.Second, nil))
	require.Zero(t, httpx.Backoff(3, time.Second, -1, nil))
}

// Full jitter: always within the bounds, the same for the same seed, and on
// average half of the bound.
func TestBackoffJitter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(-2, 100).Draw(t, "attempt")
		base := time.Duration(rapid.Int64().Draw(t, "base"))
		limit := time.Duration(rapid.Int64().Draw(t, "limit"))
		seed := rapid.Uint64().Draw(t, "seed")
		got := httpx.Backoff(attempt, base, limit, rand.New(rand.NewPCG(seed, 0)))
		require.GreaterOrEqual(t, got, time.Duration(0))
		require.LessOrEqual(t, got, httpx.Backoff(attempt, base, limit, nil))
		require.Equal(t, got, httpx.Backoff(attempt, base, limit, rand.New(rand.NewPCG(seed, 0))))
	})
	rng, sum := rand.New(rand.NewPCG(1, 2)), time.Duration(0)
	for range 10_000 {
		sum += httpx.Backoff(3, time.Second, time.Minute, rng)
	}
	require.InEpsilon(t, 4*time.Second, sum/10_000, 0.02)
}
