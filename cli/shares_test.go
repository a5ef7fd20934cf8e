package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What people had of a pool is shown with whose part it is.
func TestSharesOfUsers(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	operator := w.env["FOREWARM_API_KEY"]
	w.env["FOREWARM_API_KEY"] = w.createMember("ada")
	w.mustRun("allocate", "--gpus", "4", "--pool", "lab", "--for", "2h", "--wait")
	w.passTime(time.Hour)
	w.env["FOREWARM_API_KEY"] = operator
	require.Regexp(t, `^ORGANIZATION +USER +SHARE +GPU-HOURS\nacme +ada@example.com +0\.\d+ +3\.99$`,
		w.mustRun("shares", "lab", "--users"))
	require.Contains(t, w.mustRun("shares", "lab", "--users", "-o", "json"), `"user_email": "ada@example.com"`)
}
