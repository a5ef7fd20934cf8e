package evidence_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/evidence"
)

func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 5}), noon
	playRepeatedly(t, b, &now, 30, true)
	playRepeatedly(t, b, &now, 7, false)
	closeRepeatedly(b, 25, false)
	_, err := b.Consider(now, "open", recordAt(now), userTerms())
	require.NoError(t, err)
	data, err := json.Marshal(b)
	require.NoError(t, err)
	var back evidence.TrackRecords
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, b.TrackRecord("llm", "announced"), back.TrackRecord("llm", "announced"))

	want, loss := playOnce(t, b, now, true)
	got, same := playOnce(t, &back, now, true)
	require.Equal(t, want, got, "the same decisions to the last bit")
	require.Equal(t, loss, same)
	one, err := json.Marshal(b)
	require.NoError(t, err)
	two, err := json.Marshal(&back)
	require.NoError(t, err)
	require.Equal(t, string(one), string(two))
}

func TestABadStateChangesNothing(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 5}), noon
	playRepeatedly(t, b, &now, 3, true)
	_, err := b.Consider(now, "open", recordAt(now), userTerms())
	require.NoError(t, err)
	whole, err := json.Marshal(b)
	require.NoError(t, err)
	for name, swap := range map[string][2]string{
		"version":  {`"version":1`, `"version":9`},
		"unknown":  {`"version":1`, `"version":1,"extra":1`},
		"config":   {`"allowance":5`, `"allowance":-5`},
		"refill":   {`"refill":2592000000000000`, `"refill":1`},
		"count":    {`"fleet":{"n":`, `"fleet":{"n":1e9,"m":`},
		"count ":   {`"fleet":{"n":2`, `"fleet":{"n":-2`},
		"platt":    {`"platt":{"a":0,"b":1`, `"platt":{"a":0,"b":-1`},
		"purse":    {`"purse":{"balance":`, `"purse":{"balance":-`},
		"standing": {`"gains":[`, `"gains":[` + strings.Repeat("0,", 25)},
		"account":  {`"sources":{"llm"`, `"sources":{"other"`},
		"size":     {`"size":1`, `"size":3`},
		"record":   {`"Mid":4`, `"Mid":0`},
		"half":     {`}}`, ``},
	} {
		bad := strings.Replace(string(whole), swap[0], swap[1], 1)
		require.NotEqual(t, string(whole), bad, name)
		require.Error(t, b.UnmarshalJSON([]byte(bad)), name)
		after, err := json.Marshal(b)
		require.NoError(t, err)
		require.Equal(t, string(whole), string(after), name)
	}
	require.Error(t, b.UnmarshalJSON([]byte(`{"version":1}`)))
}

// One kind with one tenant and everything learned fits into 4 KB,
// and the number of kinds is bounded too.
func TestStateIsSmall(t *testing.T) {
	t.Parallel()
	b, now := newTrackRecords(t, evidence.Config{Allowance: 5}), noon
	playRepeatedly(t, b, &now, 100, true)
	playRepeatedly(t, b, &now, 100, false)
	closeRepeatedly(b, 100, true)
	data, err := json.Marshal(b)
	require.NoError(t, err)
	require.Less(t, len(data), 4096)

	crowd := newTrackRecords(t, evidence.Config{Allowance: 5})
	last := evidence.Decision{}
	for i := range 5000 {
		r := believableRecord()
		r.Tenant = time.Duration(i).String()
		last, err = crowd.Consider(noon, r.Tenant, r, userTerms())
		require.NoError(t, err)
	}
	require.Equal(t, evidence.Crowded, last.Verdict)
}
