package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// A node is told to dial where the control plane says it is. Where it does not, an address
// that only this machine reaches is told of.
func TestANodeDialsThePublicAddress(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("allocate", "--gpus", "4", "--pool", "lab", "--wait")
	id := w.mustRun("nodes", "list", "--jq", ".[0].id")
	out, errs, _ := w.runCommand("nodes", "join", id)
	require.Contains(t, out, "--url "+w.url+" ")
	require.Contains(t, errs, "Warning: "+w.url+" is reached on this machine alone")
	require.Contains(t, errs, "server.public_url")

	url := "https://forewarm.example.org/"
	configured := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"node_id":"nod_1","token":"fw_node_1","expires_at":"2026-03-02T09:00:00Z",`+
			`"url":"`+url+`"}`)
	}))
	defer configured.Close()
	w.env["FOREWARM_API"] = configured.URL
	out, errs, _ = w.runCommand("nodes", "join", "nod_1")
	require.Contains(t, out, "--url https://forewarm.example.org --node nod_1")
	require.NotContains(t, errs, "Warning")
	url = "http://127.0.0.1:8787"
	_, errs, _ = w.runCommand("nodes", "join", "nod_1")
	require.Contains(t, errs, "Warning: "+url+" is reached on this machine alone. For a node on another one, write the ")
	require.Contains(t, errs, "server.public_url is this loopback address.\n")
	require.NotContains(t, errs, "set server.public_url")
	url = "javascript:x"
	out, _, _ = w.runCommand("nodes", "join", "nod_1")
	require.Contains(t, out, "--url "+configured.URL+" ", "it is no address")
}

// A token cannot be asked for twice with one effect, and nothing pretends that it can.
func TestATokenIsNotAskedForWithAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("allocate", "--gpus", "4", "--pool", "lab", "--wait")
	id := w.mustRun("nodes", "list", "--jq", ".[0].id")
	_, errs, code := w.runCommand("nodes", "join", id, "--idempotency-key", "once")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "--idempotency-key is not for tokens")
	require.Contains(t, w.mustRun("api", "POST", "/v1/nodes/"+id+"/join-token", "-d", "{}"), "token")
	_, errs, code = w.runCommand("api", "POST", "/v1/nodes/"+id+"/join-token", "-d", "{}", "--idempotency-key", "once")
	require.NotZero(t, code)
	require.Contains(t, errs, "must not be given")
}

// A key that is asked for again is not made again.
func TestAKeyIsMadeOnceForAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	id := w.mustRun("key", "create", "ci", "--idempotency-key", "once", "--jq", ".key.id")
	_, errs, code := w.runCommand("key", "create", "ci", "--idempotency-key", "once")
	require.Equal(t, exit.Conflict, code)
	require.Contains(t, errs, id)
	require.Contains(t, errs, "forewarm key revoke "+id)
}
