package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
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
	url = "javascript:x"
	out, _, _ = w.runCommand("nodes", "join", "nod_1")
	require.Contains(t, out, "--url "+configured.URL+" ", "it is no address")
}
