package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// TestAuditVerify goes on from page to page, says how far it has come, and fails
// when something is not as it was sealed.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	since := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	var asked []string
	var finding *contract.AuditFinding
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("after")+"|"+r.URL.Query().Get("anchor"))
		page := contract.AuditPage{Seals: 20, Events: 1000, LastSeal: "20:aa", More: true, NewestSeal: 21}
		if r.URL.Query().Get("after") != "" {
			page = contract.AuditPage{Seals: 1, Events: 7, LastSeal: "21:bb", NewestSeal: 21, Unsealed: 3,
				UnsealedSince: &since, Finding: finding}
		}
		out.Header().Set("Content-Type", "application/json")
		_ = output.WriteJSONLine(out, page)
	}))
	t.Cleanup(s.Close)
	out, errs, code := w.runCommand("audit", "verify", "--server", s.URL, "--anchor", "5:cc")
	require.Zero(t, code, errs)
	require.Equal(t, []string{"|5:cc", "20:aa|5:cc"}, asked)
	require.Contains(t, errs, "seal 20 of 21: 1000 events")
	for _, text := range []string{"is as it was sealed", "1007", "3 events", "21:bb"} {
		require.Contains(t, out, text)
	}
	out, _, code = w.runCommand("audit", "verify", "--server", s.URL, "-o", "name")
	require.Zero(t, code)
	require.Equal(t, "21:bb", strings.TrimSpace(out), "what an auditor keeps")

	finding = &contract.AuditFinding{Kind: "event-missing", Seal: 21, Event: 1004, What: "was removed"}
	_, errs, code = w.runCommand("audit", "verify", "--server", s.URL)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, errs, "event 1004 (seal 21) was removed")

	finding = &contract.AuditFinding{Kind: "seals-behind", What: "seal 57:aa, seen by host, is not in the journal"}
	out, errs, code = w.runCommand("audit", "verify", "--server", s.URL)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, out, "lacks seals")
	require.Contains(t, errs, "seal 57:aa, seen by host, is not in the journal [seals-behind]")
	require.Contains(t, errs, "forewarm recovery show")
}
