package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/reservation"
)

// replayDecision sends a decision through its record and back.
func replayDecision(t require.TestingT, w world) admission.Record {
	record := admission.NewRecord(w.req, w.view)
	text, err := record.Encode()
	require.NoError(t, err)
	again, err := admission.DecodeRecord(text)
	require.NoError(t, err)
	canonical, err := again.Encode()
	require.NoError(t, err)
	require.Equal(t, string(text), string(canonical), "the encoding is canonical")
	return again
}

func TestRecordsAreDecidedAgainTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		d := admission.Decide(w.req, w.view)
		record := replayDecision(t, w)
		require.Equal(t, d, record.Decision)
		same, diff := admission.Replay(record)
		require.True(t, same, diff)
		require.Empty(t, diff)
	})
}

func TestATamperedRecordDiffers(t *testing.T) {
	t.Parallel()
	w := world{view: emptyView(), req: newRequest(reservation.Guaranteed, 1, 4, hoursAhead(1, 3))}
	for name, tc := range map[string]struct {
		tamper func(*admission.Record)
		want   string
	}{
		"slots":  {func(r *admission.Record) { r.Decision.Slots = []int{3} }, "slots: recorded [3], decided again [0]"},
		"cost":   {func(r *admission.Record) { r.Facts.Cost++ }, "cost: recorded 8000000, decided again 8000001"},
		"limits": {func(r *admission.Record) { r.Facts.Limits.Limits.GPUs = 3 }, "quota_exceeded"},
		"room":   {func(r *admission.Record) { r.Facts.Room.Found = false }, "capacity_exhausted"},
	} {
		record := replayDecision(t, w)
		tc.tamper(&record)
		same, diff := admission.Replay(record)
		require.False(t, same, name)
		require.Contains(t, diff, tc.want, name)
	}
}

func TestOnlyWholeRecordsAreRead(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"another version": `{"Version":2}`, "no version": `{}`, "more than is known": `{"Version":1,"Mood":"good"}`,
		"no JSON": `{`,
	} {
		_, err := admission.DecodeRecord([]byte(text))
		require.Error(t, err, name)
	}
}
