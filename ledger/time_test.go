package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// A weekday alone must not be taken for that of another week.
func TestTimesOfOtherWeeksHaveTheirDate(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	for away, want := range map[time.Duration]string{
		0: "Mon 08:00:00Z", 5 * 24 * time.Hour: "Sat 08:00:00Z", -5 * 24 * time.Hour: "Wed 08:00:00Z",
		6 * 24 * time.Hour: "Sun 2026-03-08 08:00:00Z", 7 * 24 * time.Hour: "Mon 2026-03-09 08:00:00Z",
		-7 * 24 * time.Hour: "Mon 2026-02-23 08:00:00Z",
	} {
		require.Equal(t, want, ledger.FormatTimeSeen(monday.Add(away), monday), away)
	}
}
