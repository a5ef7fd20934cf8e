package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The log has what was changed or refused; what is read, and what daemons report all the time, is for those who debug.
func TestTheLogHasNoRoutine(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	answered := func(what string) int { return strings.Count(f.log.String(), what) }
	require.Equal(t, 2, answered("route=/v1/nodes/:id/join "), "that a daemon joins is told")
	before := answered("msg=answered")
	f.report(0)
	f.send("root", http.MethodGet, "/v1/pools", "")
	require.Equal(t, before, answered("msg=answered"), f.log.String())

	f.send("root", http.MethodGet, "/v1/pools/nothing", "")
	require.Equal(t, 1, answered("route=/v1/pools/:id status=404"))
	f.send("daemon0", http.MethodPut, f.path(0, "heartbeat"), "{}")
	require.Equal(t, 1, answered("route=/v1/nodes/:id/heartbeat status=422")+
		answered("route=/v1/nodes/:id/heartbeat status=400"))
	f.submit("root", fmt.Sprintf(`{"pool":%q,"gpus":1,"command":["true"]}`, f.pool))
	require.Equal(t, 1, answered("method=POST route=/v1/jobs status=20"))
}
