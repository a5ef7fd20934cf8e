package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

func TestAllocateAndRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createPool()
	out := w.send("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":2}`, "Idempotency-Key", "one")
	require.Equal(t, 202, out.Code, out.Body.String())
	w.runDueTasks(p)
	a := ask[contract.Allocation](w, "root", http.MethodGet, out.Header().Get("Location"), "")
	require.Equal(t, "active", a.State, w.log.String())
	a = ask[contract.Allocation](w, "root", http.MethodPost, "/v1/allocations/"+a.ID+"/release", "")
	require.Equal(t, "released", a.State)
}
