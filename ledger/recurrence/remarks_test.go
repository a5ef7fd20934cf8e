package recurrence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger/recurrence"
)

func TestDatesToLeaveOutAreDatesOfTheRule(t *testing.T) {
	t.Parallel()
	s := ruleSpec("2026-11-23T09:00:00", "Europe/Berlin", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR")
	s.ExDates = []string{"2026-12-24", "2026-11-23"}
	require.NoError(t, s.CheckSkipped())
	for date, want := range map[string]string{
		"2026-11-28": "must be dates that the rule gives; got 2026-11-28, a Saturday; the nearest: 2026-11-27, " +
			"2026-11-30",
		"2026-11-02": "must be dates that the rule gives; got 2026-11-02, a Monday; the nearest: 2026-11-23",
	} {
		s.ExDates = []string{"2026-12-24", date}
		var wrong *recurrence.Error
		require.ErrorAs(t, s.CheckSkipped(), &wrong)
		require.Equal(t, recurrence.FieldExDates, wrong.Field)
		require.Equal(t, want, wrong.Rule)
	}
	ended := ruleSpec("2026-11-23T09:00:00", "UTC", "FREQ=DAILY;COUNT=3")
	ended.ExDates = []string{"2027-01-01"}
	require.ErrorContains(t, ended.CheckSkipped(), "the nearest: 2026-11-25")
}

func TestRemarks(t *testing.T) {
	t.Parallel()
	from := parseUTC(t, "2026-11-22T00:00:00Z")
	for name, one := range map[string]struct {
		start, rule string
		length      time.Duration
		want        string
	}{
		"apart": {"2026-11-23T09:00:00", "FREQ=DAILY", 24 * time.Hour, ""},
		"overlaps": {"2026-11-23T09:00:00", "FREQ=DAILY", 25 * time.Hour,
			"each date overlaps the next, by up to 1h: meanwhile it holds its GPUs twice"},
		"some overlap": {"2026-11-23T09:00:00", "FREQ=WEEKLY;BYDAY=MO,TU;COUNT=4", 25 * time.Hour,
			"2 of the coming 4 dates overlap the next, by up to 1h: meanwhile it holds its GPUs twice"},
		"every month":     {"2026-11-28T09:00:00", "FREQ=MONTHLY", time.Hour, ""},
		"last of a month": {"2026-11-30T09:00:00", "FREQ=MONTHLY;BYMONTHDAY=-1", time.Hour, ""},
		"31st": {"2026-12-31T09:00:00", "FREQ=MONTHLY", time.Hour,
			"no date in February, April, June, September, November, which have no day 31; for the last day of each " +
				"month write FREQ=MONTHLY;BYMONTHDAY=-1"},
		"30th": {"2026-11-30T09:00:00", "FREQ=MONTHLY", time.Hour,
			"no date in February, which has no day 30; " +
				"for the last day of each month write FREQ=MONTHLY;BYMONTHDAY=-1"},
		"29th": {"2026-11-29T09:00:00", "FREQ=MONTHLY", time.Hour,
			"no date in February (but in leap years), which has no day 29; for the last day of each month write " +
				"FREQ=MONTHLY;BYMONTHDAY=-1"},
		"one of two":      {"2026-11-15T09:00:00", "FREQ=MONTHLY;BYMONTHDAY=15,31", time.Hour, ""},
		"long ones alone": {"2026-12-31T09:00:00", "FREQ=MONTHLY;INTERVAL=7;COUNT=2", time.Hour, ""},
		"over before":     {"2026-11-30T09:00:00", "FREQ=MONTHLY;COUNT=2", time.Hour, ""},
	} {
		s := ruleSpec(one.start, "UTC", one.rule)
		s.Length = one.length
		r, err := recurrence.Parse(s)
		require.NoError(t, err, name)
		if one.want == "" {
			require.Empty(t, r.Remarks(from), name)
		} else {
			require.Equal(t, []string{one.want}, r.Remarks(from), name)
		}
	}
}
