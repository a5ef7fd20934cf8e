package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/server/problem"
)

func newBatchAPI() *API {
	problem.Install() // before anything is validated, as Register does
	a := &API{huma: humago.New(http.NewServeMux(), huma.DefaultConfig("x", "1"))}
	a.Clock = clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	return a
}

// A batch of plain requests is read in one pass, as an array and line by line.
func TestUsualBatchesArePlain(t *testing.T) {
	t.Parallel()
	a := newBatchAPI()
	for _, body := range []string{"[" + usualBooking + " , " + usualBooking + " ]\n", usualBooking,
		usualBooking + "\n" + usualBooking + "\n"} {
		batch, plain := newItemCheck(a, reservationItems(a.Clock.Now())).readPlainBatch([]byte(body))
		require.True(t, plain, "%s", body)
		require.Equal(t, "job 7", batch[len(batch)-1].Request.Name)
	}
}

// TestPlainBatchesAreReadAsAllOthers: what is taken as a plain batch is one, and says the
// same when it is read request by request.
func TestPlainBatchesAreReadAsAllOthers(t *testing.T) {
	t.Parallel()
	a, taken := newBatchAPI(), 0
	parts := []string{usualBooking, `{"pool":"lab","gpus":2,"start":"2026-03-02T10:00:00Z","end":"2426-03-02T10:00:00Z"}`,
		`{"pool":"lab","gpus":2,"start":"2426-03-02T10:00:00Z","end":"2426-03-02T11:00:00Z"}`, `{}`, `{"gpus":0}`, `[]`, "1"}
	rapid.Check(t, func(t *rapid.T) {
		opens, betweens, closes := []string{"["}, []string{",", ", "}, []string{"]", " ]\n"} // of an array that is one
		if rapid.Bool().Draw(t, "damaged") {
			opens, betweens = []string{"", "[", " [ "}, []string{",", "\n", "", ", ", ",,"}
			closes = []string{"", "]", " ]\n", "]]", ",]", "\n", ","}
		}
		var body strings.Builder
		body.WriteString(rapid.SampledFrom(opens).Draw(t, "open"))
		for i, part := range rapid.SliceOfN(rapid.SampledFrom(parts), 0, 4).Draw(t, "parts") {
			if i > 0 {
				body.WriteString(rapid.SampledFrom(betweens).Draw(t, "between"))
			}
			body.WriteString(part)
		}
		body.WriteString(rapid.SampledFrom(closes).Draw(t, "close"))
		check := newItemCheck(a, reservationItems(a.Clock.Now()))
		got, plain := check.readPlainBatch([]byte(body.String()))
		if !plain {
			return
		}
		taken++
		want, err := check.decodeAnyBatch([]byte(body.String()))
		require.NoError(t, err, "%s", body.String())
		require.Equal(t, want, got, "%s", body.String())
	})
	require.Positive(t, taken)
}

// BenchmarkDecodeAnyBatch is BenchmarkDecodeBatch with a name that is not plain.
func BenchmarkDecodeAnyBatch(b *testing.B) {
	a, item := newBatchAPI(), strings.Replace(usualBooking, "job", `j\u006fb`, 1)
	body := []byte("[" + strings.Repeat(item+",", 9_999) + item + "]")
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if batch, err := decodeBatch(a, reservationItems(a.Clock.Now()), body); err != nil || batch[0].Invalid != nil {
			b.Fatal(err, batch[0].Invalid)
		}
	}
}
