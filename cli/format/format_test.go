package format

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/contract"
)

// Nothing that a server says can steer a terminal.
func TestTablesShowNoControlCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range Plain(rapid.String().Draw(t, "text")) {
			if SteersTerminal(r) {
				t.Fatalf("%q steers", r)
			}
		}
	})
}

func TestMoneyAndDurations(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{"": "$0.00", "4": "$4.00", "4.2": "$4.20", "0.000001": "<$0.01",
		"12.345678": "$12.35"} {
		require.Equal(t, want, Money(contract.Money{Amount: amount}), amount)
	}
	for d, want := range map[time.Duration]string{0: "0s", 90 * time.Minute: "1h30m", 2 * time.Hour: "2h",
		24 * time.Hour: "24h", 72 * time.Hour: "3d", 61 * time.Second: "1m1s", 500 * time.Millisecond: "0.5s"} {
		require.Equal(t, want, Duration(d))
	}
}

// What is ready in no time is so now.
func TestReadyIn(t *testing.T) {
	t.Parallel()
	require.Equal(t, "now", ReadyIn(&contract.WaitEstimate{}))
	require.Equal(t, "2m (59s–4m5s)", ReadyIn(&contract.WaitEstimate{P10Seconds: 59, P50Seconds: 120, P90Seconds: 245}))
	require.Equal(t, "-", ReadyIn(nil))
}
