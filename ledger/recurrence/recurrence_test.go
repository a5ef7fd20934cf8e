package recurrence_test

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/ledger/recurrence"
)

func ruleSpec(start, zone, rule string) recurrence.Spec {
	return recurrence.Spec{StartLocal: start, Timezone: zone, RRule: rule, Length: 3 * time.Hour}
}

func parseUTC(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

func startsBetween(t *testing.T, s recurrence.Spec, from, to string) []string {
	t.Helper()
	rule, err := recurrence.Parse(s)
	require.NoError(t, err)
	var out []string
	for _, o := range rule.Between(parseUTC(t, from), parseUTC(t, to), 1000) {
		require.Equal(t, s.Length, o.End.Sub(o.Start), "an end is a length after its start, in absolute time")
		require.True(t, o.Start.Equal(o.LocalStart))
		out = append(out, o.LocalStart.Format(time.RFC3339))
	}
	return out
}

func TestZones(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start, zone, rule string
		skip              bool
		from, to          string
		want              []string
	}{
		"Berlin gap shifts by an hour": {
			"2026-03-28T02:30:00", "Europe/Berlin", "FREQ=DAILY", false, "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
			[]string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		"Berlin gap is skipped": {
			"2026-03-28T02:30:00", "Europe/Berlin", "FREQ=DAILY", true, "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
			[]string{"2026-03-28T02:30:00+01:00", "2026-03-30T02:30:00+02:00"},
		},
		"Berlin fold is its first": {
			"2026-10-24T02:30:00", "Europe/Berlin", "FREQ=DAILY", false, "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z",
			[]string{"2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"New York gap": {
			"2026-03-07T02:30:00", "America/New_York", "FREQ=DAILY", false, "2026-03-07T00:00:00Z",
			"2026-03-10T00:00:00Z",
			[]string{"2026-03-07T02:30:00-05:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"},
		},
		"New York fold": {
			"2026-10-31T01:30:00", "America/New_York", "FREQ=DAILY", false, "2026-10-31T00:00:00Z",
			"2026-11-03T00:00:00Z",
			[]string{"2026-10-31T01:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		},
		"Lord Howe gap is half an hour": {
			"2026-10-03T02:15:00", "Australia/Lord_Howe", "FREQ=DAILY", false, "2026-10-02T00:00:00Z",
			"2026-10-05T00:00:00Z",
			[]string{"2026-10-03T02:15:00+10:30", "2026-10-04T02:45:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		"Lord Howe fold is half an hour": {
			"2026-04-04T01:45:00", "Australia/Lord_Howe", "FREQ=DAILY", false, "2026-04-03T00:00:00Z",
			"2026-04-06T00:00:00Z",
			[]string{"2026-04-04T01:45:00+11:00", "2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		},
		"Apia left out a whole day": {
			"2011-12-29T09:00:00", "Pacific/Apia", "FREQ=DAILY", false, "2011-12-28T00:00:00Z", "2012-01-01T00:00:00Z",
			[]string{"2011-12-29T09:00:00-10:00", "2011-12-31T09:00:00+14:00", "2012-01-01T09:00:00+14:00"},
		},
		"nine in the morning stays nine": {
			"2026-03-27T09:00:00", "Europe/Berlin", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", false, "2026-03-27T00:00:00Z",
			"2026-03-31T12:00:00Z",
			[]string{"2026-03-27T09:00:00+01:00", "2026-03-30T09:00:00+02:00", "2026-03-31T09:00:00+02:00"},
		},
		"leap day": {
			"2024-02-29T12:00:00", "UTC", "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=29", false, "2024-01-01T00:00:00Z",
			"2033-01-01T00:00:00Z",
			[]string{"2024-02-29T12:00:00Z", "2028-02-29T12:00:00Z", "2032-02-29T12:00:00Z"},
		},
		"last Friday of the month": {
			"2026-01-01T08:00:00", "UTC", "FREQ=MONTHLY;BYDAY=-1FR;COUNT=3", false, "2026-01-01T00:00:00Z",
			"2027-01-01T00:00:00Z",
			[]string{"2026-01-30T08:00:00Z", "2026-02-27T08:00:00Z", "2026-03-27T08:00:00Z"},
		},
		"until a date has that date": {
			"2026-01-01T23:00:00", "America/New_York", "FREQ=DAILY;UNTIL=20260102", false, "2026-01-01T00:00:00Z",
			"2027-01-01T00:00:00Z",
			[]string{"2026-01-01T23:00:00-05:00", "2026-01-02T23:00:00-05:00"},
		},
		"until a UTC time is put on the zone's clock": {
			"2026-01-01T23:00:00", "America/New_York", "FREQ=DAILY;UNTIL=20260103T040000Z", false,
			"2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z",
			[]string{"2026-01-01T23:00:00-05:00", "2026-01-02T23:00:00-05:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ruleSpec(c.start, c.zone, c.rule)
			if c.skip {
				s.Policy = recurrence.Skip
			}
			require.Equal(t, c.want, startsBetween(t, s, c.from, c.to))
		})
	}
}

func TestExDatesAndLimit(t *testing.T) {
	t.Parallel()
	s := ruleSpec("2026-12-23T09:00:00", "Europe/Berlin", "FREQ=DAILY")
	s.ExDates = []string{"2026-12-24", "2026-12-25"}
	require.Equal(t, []string{"2026-12-23T09:00:00+01:00", "2026-12-26T09:00:00+01:00"},
		startsBetween(t, s, "2026-12-01T00:00:00Z", "2026-12-27T00:00:00Z"))
	rule, err := recurrence.Parse(s)
	require.NoError(t, err)
	require.Len(t, rule.Between(parseUTC(t, "2026-12-01T00:00:00Z"), parseUTC(t, "2027-12-01T00:00:00Z"), 5), 5)
	require.Empty(t, rule.Between(parseUTC(t, "2026-12-01T00:00:00Z"), parseUTC(t, "2026-12-01T00:00:00Z"), 5))
	require.Empty(t, recurrence.Rule{}.Between(parseUTC(t, "2026-12-01T00:00:00Z"),
		parseUTC(t, "2026-12-02T00:00:00Z"), 0))
}

func TestWhatCannotBeARule(t *testing.T) {
	t.Parallel()
	good := ruleSpec("2026-11-20T09:00:00", "Europe/Berlin", "FREQ=DAILY")
	for name, c := range map[string]struct {
		change func(*recurrence.Spec)
		field  string
	}{
		"unknown zone":  {func(s *recurrence.Spec) { s.Timezone = "Mars/Olympus" }, recurrence.FieldTimezone},
		"no zone":       {func(s *recurrence.Spec) { s.Timezone = "" }, recurrence.FieldTimezone},
		"the machine's": {func(s *recurrence.Spec) { s.Timezone = "Local" }, recurrence.FieldTimezone},
		"of POSIX":      {func(s *recurrence.Spec) { s.Timezone = "posixrules" }, recurrence.FieldTimezone},
		"a POSIX copy": {func(s *recurrence.Spec) { s.Timezone = "posix/Europe/Berlin" },
			recurrence.FieldTimezone},
		"with leap seconds": {func(s *recurrence.Spec) { s.Timezone = "right/UTC" }, recurrence.FieldTimezone},
		"not set up":        {func(s *recurrence.Spec) { s.Timezone = "Factory" }, recurrence.FieldTimezone},
		"the system's":      {func(s *recurrence.Spec) { s.Timezone = "localtime" }, recurrence.FieldTimezone},
		"a path":            {func(s *recurrence.Spec) { s.Timezone = "../../etc/passwd" }, recurrence.FieldTimezone},
		"start with offset": {func(s *recurrence.Spec) { s.StartLocal = "2026-11-20T09:00:00Z" },
			recurrence.FieldStart},
		"start long ago":    {func(s *recurrence.Spec) { s.StartLocal = "0001-01-01T00:00:00" }, recurrence.FieldStart},
		"no such day":       {func(s *recurrence.Spec) { s.StartLocal = "2026-02-30T09:00:00" }, recurrence.FieldStart},
		"hourly":            {func(s *recurrence.Spec) { s.RRule = "FREQ=HOURLY" }, recurrence.FieldRRule},
		"yearly":            {func(s *recurrence.Spec) { s.RRule = "FREQ=YEARLY" }, recurrence.FieldRRule},
		"no rule":           {func(s *recurrence.Spec) { s.RRule = "" }, recurrence.FieldRRule},
		"no frequency":      {func(s *recurrence.Spec) { s.RRule = "COUNT=3" }, recurrence.FieldRRule},
		"twice":             {func(s *recurrence.Spec) { s.RRule = "FREQ=DAILY;FREQ=DAILY" }, recurrence.FieldRRule},
		"interval zero":     {func(s *recurrence.Spec) { s.RRule = "FREQ=DAILY;INTERVAL=0" }, recurrence.FieldRRule},
		"interval negative": {func(s *recurrence.Spec) { s.RRule = "FREQ=DAILY;INTERVAL=-1" }, recurrence.FieldRRule},
		"count huge": {func(s *recurrence.Spec) { s.RRule = "FREQ=DAILY;COUNT=99999999999999999999" },
			recurrence.FieldRRule},
		"count and until": {func(s *recurrence.Spec) { s.RRule = "FREQ=DAILY;COUNT=1;UNTIL=20270101" },
			recurrence.FieldRRule},
		"numbered day": {func(s *recurrence.Spec) { s.RRule = "FREQ=WEEKLY;BYDAY=1MO" }, recurrence.FieldRRule},
		"day":          {func(s *recurrence.Spec) { s.RRule = "FREQ=WEEKLY;BYDAY=XX" }, recurrence.FieldRRule},
		"empty day":    {func(s *recurrence.Spec) { s.RRule = "FREQ=WEEKLY;BYDAY=MO," }, recurrence.FieldRRule},
		"month day zero": {func(s *recurrence.Spec) { s.RRule = "FREQ=MONTHLY;BYMONTHDAY=0" },
			recurrence.FieldRRule},
		"month day weekly": {func(s *recurrence.Spec) { s.RRule = "FREQ=WEEKLY;BYMONTHDAY=1" }, recurrence.FieldRRule},
		"by hour":          {func(s *recurrence.Spec) { s.RRule = "FREQ=DAILY;BYHOUR=1,2,3" }, recurrence.FieldRRule},
		"until":            {func(s *recurrence.Spec) { s.RRule = "FREQ=DAILY;UNTIL=soon" }, recurrence.FieldRRule},
		"exdate":           {func(s *recurrence.Spec) { s.ExDates = []string{"24.12."} }, recurrence.FieldExDates},
		"length zero":      {func(s *recurrence.Spec) { s.Length = 0 }, recurrence.FieldLength},
		"length negative":  {func(s *recurrence.Spec) { s.Length = -time.Hour }, recurrence.FieldLength},
		"length huge":      {func(s *recurrence.Spec) { s.Length = 1 << 62 }, recurrence.FieldLength},
		"policy":           {func(s *recurrence.Spec) { s.Policy = "guess" }, recurrence.FieldPolicy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := good
			c.change(&s)
			_, err := recurrence.Parse(s)
			var wrong *recurrence.Error
			require.True(t, errors.As(err, &wrong), "%v", err)
			require.Equal(t, c.field, wrong.Field)
			require.NotEmpty(t, wrong.Rule)
		})
	}
}

func TestOccurrencesAreOrderedAndOncePerDate(t *testing.T) {
	t.Parallel()
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo",
		"America/Havana", "UTC"}
	rules := []string{"FREQ=DAILY", "FREQ=DAILY;INTERVAL=3", "FREQ=WEEKLY;BYDAY=SU,MO", "FREQ=MONTHLY;BYDAY=-1SU",
		"FREQ=MONTHLY;BYMONTHDAY=1,31,-1"}
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(rapid.Int64Range(1_293_000_000, 1_900_000_000).Draw(t, "start"), 0).UTC()
		s := ruleSpec(start.Format("2006-01-02T15:04:05"), rapid.SampledFrom(zones).Draw(t, "zone"),
			rapid.SampledFrom(rules).Draw(t, "rule"))
		s.Policy = rapid.SampledFrom([]recurrence.Policy{recurrence.Shift, recurrence.Skip}).Draw(t, "policy")
		rule, err := recurrence.Parse(s)
		require.NoError(t, err)
		from := start.Add(time.Duration(rapid.Int64Range(-72, 24*400).Draw(t, "hours")) * time.Hour)
		mid, end := from.Add(60*24*time.Hour), from.Add(120*24*time.Hour)
		all := rule.Between(from, end, 1000)
		dates := map[string]bool{}
		for i, o := range all {
			require.False(t, dates[o.LocalStart.Format("2006-01-02")], "%s is there twice", o.LocalStart)
			dates[o.LocalStart.Format("2006-01-02")] = true
			require.True(t, i == 0 || all[i-1].Start.Before(o.Start), "not in order")
			if s.Policy == recurrence.Skip {
				require.Equal(t, s.StartLocal[11:], o.LocalStart.Format("15:04:05"))
			}
		}
		require.Equal(t, all, append(rule.Between(from, mid, 1000), rule.Between(mid, end, 1000)...),
			"what is found does not depend on where the search begins")
	})
}
