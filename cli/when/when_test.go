package when

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhen(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 3, 6, 13, 0, 0, 0, time.UTC) // a Friday, 14:00 in Berlin
	for text, want := range map[string]string{
		"now": "2026-03-06T14:00:00+01:00", "in 2h": "2026-03-06T16:00:00+01:00", "in 1d": "2026-03-07T14:00:00+01:00",
		"15:30": "2026-03-06T15:30:00+01:00", "09:00": "2026-03-07T09:00:00+01:00",
		"today 13:00":    "2026-03-06T13:00:00+01:00",
		"tomorrow 09:00": "2026-03-07T09:00:00+01:00", "fri 15:00": "2026-03-06T15:00:00+01:00",
		"Friday 13:00": "2026-03-13T13:00:00+01:00",
		"mon 09:00":    "2026-03-09T09:00:00+01:00", "2026-07-01 09:00": "2026-07-01T09:00:00+02:00",
		"2026-07-01": "2026-07-01T00:00:00+02:00", "2026-12-01": "2026-12-01T00:00:00+01:00",
		"2026-03-29 04:00":          "2026-03-29T04:00:00+02:00",
		"2027-10-31 02:30":          "2027-10-31T02:30:00+02:00",
		"2026-03-29 02:30":          "2026-03-29T03:30:00+02:00", // twice the first; never: as schedules shift it
		"2027-10-31T02:30:00+01:00": "2027-10-31T02:30:00+01:00",
		"2026-07-01T09:00:00Z":      "2026-07-01T11:00:00+02:00", "2026-07-01T09:00": "2026-07-01T09:00:00+02:00",
	} {
		got, err := Parse(text, now, berlin)
		require.NoError(t, err, text)
		require.Equal(t, want, got.In(berlin).Format(time.RFC3339), text)
	}
	for _, text := range []string{"", "soon", "25:00", "tomorrow", "frisday 10:00", "in -2h", "in 2",
		"2026-13-01 09:00", "2026-13-01", "2026-7-1", "monday monday"} {
		_, err := Parse(text, now, berlin)
		require.Error(t, err, text)
	}
}
