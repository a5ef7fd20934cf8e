package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// The ETag of a pool is of what people set: a boot that was measured between
// reading and changing is no conflict, another change is one.
func TestWhatAPoolLearnsIsNoConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools",
		strings.Replace(poolBody, `"simulated"`, `"min_nodes":1,"simulated"`, 1))
	read := w.send("root", http.MethodGet, "/v1/pools/lab", "").Header().Get("ETag")
	w.runDueTasks(p)
	learned := w.send("root", http.MethodGet, "/v1/pools/lab", "")
	require.Contains(t, learned.Body.String(), `"boot_samples":1`)
	require.Equal(t, read, learned.Header().Get("ETag"))

	changed := w.send("root", http.MethodPatch, "/v1/pools/lab", `{"max_nodes":3}`, "If-Match", read)
	require.Equal(t, 200, changed.Code, changed.Body.String())
	require.NotEqual(t, read, changed.Header().Get("ETag"))
	require.Equal(t, changed.Header().Get("ETag"),
		w.send("root", http.MethodGet, "/v1/pools/lab", "").Header().Get("ETag"))
	stale := w.refuse("root", http.MethodPatch, "/v1/pools/lab", `{"max_nodes":4}`, "If-Match", read)
	require.Equal(t, contract.CodeETagMismatch, stale.Code)
}
