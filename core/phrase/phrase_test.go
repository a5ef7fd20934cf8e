package phrase_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/phrase"
)

func TestCount(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 GPUs", phrase.Count(0, "GPU"))
	require.Equal(t, "1 GPU", phrase.Count(1, "GPU"))
	require.Equal(t, "2 nodes", phrase.Count(int64(2), "node"))
}

func TestLengthsInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][2]string{
		0:                                      {"0s", "0s"},
		340 * time.Millisecond:                 {"0.3s", "0.3s"},
		-400 * time.Millisecond:                {"-0.4s", "-0.4s"},
		20 * time.Second:                       {"20s", "20s"},
		-90 * time.Second:                      {"-1m30s", "-1m30s"},
		10 * time.Minute:                       {"10m", "10m"},
		5*time.Minute + 12400*time.Millisecond: {"5m12s", "5m12s"},
		time.Hour:                              {"1h", "1h"},
		24 * time.Hour:                         {"24h", "24h"},
		56*time.Hour + 20*time.Minute + 13*time.Second: {"56h20m13s", "56h20m"},
		168 * time.Hour:                                 {"7d", "7d"},
		168*time.Hour + 12*time.Second:                  {"168h0m12s", "7d"},
		169*time.Hour + 59*time.Minute + 50*time.Second: {"169h59m50s", "7d2h"},
		30*24*time.Hour + time.Hour:                     {"721h", "30d1h"},
	} {
		require.Equal(t, want[0], phrase.Length(d))
		require.Equal(t, want[1], phrase.Span(d))
	}
}
