package predict

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const good = `{"records":[{"start":"2026-01-05T09:00:00Z","end":"2026-01-05T10:00:00Z",` +
	`"gpus_low":1,"gpus_mid":4,"gpus_high":8,"probability":0.8,"reason_code":"announced"}]}`

var from, to = monday.Add(9 * time.Hour), monday.Add(13 * time.Hour)

func TestDecodeReadsAGoodAnswer(t *testing.T) {
	t.Parallel()
	records, err := decodeAnswer(good, from, to)
	require.NoError(t, err)
	require.Equal(t,
		[]Record{{Start: from, End: from.Add(time.Hour), Low: 1, Mid: 4, High: 8, Probability: 0.8, Reason: Announced}},
		records)
	records, err = decodeAnswer(`{"records":[]}`, from, to)
	require.NoError(t, err)
	require.Empty(t, records)
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string][2]string{
		"unknown field":      {`"reason_code"`, `"secret":1,"reason_code"`},
		"missing field":      {`"gpus_low":1,`, ``},
		"null":               {`0.8`, `null`},
		"negative":           {`"gpus_low":1`, `"gpus_low":-1`},
		"huge":               {`"gpus_high":8`, `"gpus_high":1e7`},
		"overflow":           {`"gpus_high":8`, `"gpus_high":1e999`},
		"fraction":           {`"gpus_mid":4`, `"gpus_mid":4.5`},
		"out of order":       {`"gpus_mid":4`, `"gpus_mid":9`},
		"nan":                {`0.8`, `NaN`},
		"probability":        {`0.8`, `1.01`},
		"text for a number":  {`0.8`, `"0.8"`},
		"reason":             {`announced`, `because I say so`},
		"time":               {`2026-01-05T09:00:00Z`, `tomorrow`},
		"before the horizon": {`2026-01-05T09:00:00Z`, `2026-01-05T08:59:59Z`},
		"after the horizon":  {`2026-01-05T10:00:00Z`, `2026-01-05T13:00:01Z`},
		"empty window":       {`2026-01-05T10:00:00Z`, `2026-01-05T09:00:00Z`},
		"trailing text":      {`]}`, `]} and now run rm -rf /`},
		"two objects":        {`]}`, `]}{}`},
		"wrong root":         {`{"records":`, `{"plan":`},
		"fence":              {`{"records"`, "```json\n{\"records\""},
	} {
		bad := strings.Replace(good, swap[0], swap[1], 1)
		require.NotEqual(t, good, bad, name)
		_, err := decodeAnswer(bad, from, to)
		require.Error(t, err, name)
		for _, quoted := range []string{"secret", "because", "tomorrow", "rm -rf", "plan"} {
			require.NotContains(t, err.Error(), quoted, name)
		}
	}
	for _, bad := range []string{"", "null", "[]", "{}", `{"records":null}`} {
		_, err := decodeAnswer(bad, from, to)
		require.Error(t, err, bad)
	}
}

// Pieces of a good answer in any order and with anything between them give an
// error or records within the limits, never a panic.
func TestDecodeNeverLetsAnythingElsePass(t *testing.T) {
	t.Parallel()
	pieces := append(strings.SplitAfter(good, ","), "-", "9", "e308", "\x00", "NaN", `{"records":[`, "]}", `\u0000`)
	rapid.Check(t, func(t *rapid.T) {
		text := good
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			end := rapid.IntRange(at, min(len(text), at+3)).Draw(t, "end")
			text = text[:at] + rapid.SampledFrom(pieces).Draw(t, "piece") + text[end:]
		}
		records, err := decodeAnswer(text, from, to)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(records), maxRecords)
		for _, r := range records {
			require.True(t, 0 <= r.Low && r.Low <= r.Mid && r.Mid <= r.High && r.High <= maxClaim)
			require.True(t, r.Probability >= 0 && r.Probability <= 1)
			require.True(t, !r.Start.Before(from) && r.Start.Before(r.End) && !r.End.After(to))
			require.Contains(t, Reasons(), r.Reason)
		}
	})
}

func TestAClaimIsSharedOutOverTheWindowsItCovers(t *testing.T) {
	t.Parallel()
	r := Record{Start: from.Add(30 * time.Minute), End: from.Add(90 * time.Minute)}
	require.InDelta(t, 0.5, r.overlapShare(from, from.Add(time.Hour)), 1e-12)
	require.InDelta(t, 0.5, r.overlapShare(from.Add(time.Hour), from.Add(2*time.Hour)), 1e-12)
	require.LessOrEqual(t, r.overlapShare(from.Add(2*time.Hour), to), 0.0)
}
