package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// A whole number that is written as none is named inside a plan and a batch, too.
func TestNumbersAreNamedWhereverTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	p := w.refuse("root", http.MethodPost, "/v1/plans", `{"kind":"allocate","request":{"pool":"lab","gpus":1e0}}`)
	require.Equal(t, "/request/gpus", p.Errors[0].Pointer)
	p = w.refuse("root", http.MethodPost, "/v1/jobs",
		`{"pool":"lab","command":["a"],"checkpoint":{"signal":"USR1","before_seconds":1.2e2}}`)
	require.Equal(t, contract.FieldError{Pointer: "/checkpoint/before_seconds", Code: "type",
		Message: "must be a whole number in digits alone, without a fraction or an exponent"}, p.Errors[0])
	require.Equal(t, "Send checkpoint.before_seconds as 120", p.Fixes[0].Label)
	got := ask[contract.BatchResults](w, "root", http.MethodPost, "/v1/reservations/batch",
		`[{"pool":"lab","gpus":1e0,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}]`, "Idempotency-Key", "k")
	require.Equal(t, "/gpus", got.Items[0].Field)
	require.Contains(t, got.Items[0].Message, "must be a whole number in digits alone")
}
