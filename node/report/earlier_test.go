package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/report"
)

// A control plane that was restored from a backup knows an earlier key only, and a daemon that began anew goes on with
// it, and gets another one.
func TestAnEarlierKeyIsGoodAfterARestore(t *testing.T) {
	t.Parallel()
	for _, code := range []string{contract.CodeUnauthenticated, contract.CodeRecovering} {
		d := newDaemon(t)
		r, err := d.start("token")
		require.NoError(t, err)
		d.mustStep(r) // joins: key1
		for range 2 { // each renews: key2 and key3
			r, err = d.start("")
			require.NoError(t, err)
			d.mustStep(r)
		}
		no := contract.NewProblem(code, "no")
		d.server.failed = map[string]*contract.Problem{"key2": &no, "key3": &no}
		d.server.asked = nil
		d.mustStep(r)
		require.Equal(t, []string{"heartbeat key3", "heartbeat key2", "heartbeat key1", "renew key1"}, d.server.asked, code)
		require.Equal(t, "key4", r.Key().Reveal())
		r, err = d.start("")
		require.NoError(t, err)
		d.server.asked = nil
		d.mustStep(r)
		require.Equal(t, "heartbeat key4", d.server.asked[0], "it is kept")
	}
}

// While nobody has confirmed what was found after a restore, a daemon whose keys are all unknown tries again, and ends
// nothing; after that its refusal is final.
func TestAnUnknownKeyIsTriedAgainWhileTheControlPlaneRecovers(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.mustStep(r)
	no := contract.NewProblem(contract.CodeRecovering, "no")
	d.server.fail = &no
	for range 5 {
		d.mustStep(r)
	}
	require.Equal(t, "key1", r.Key().Reveal())
	gone := contract.NewProblem(contract.CodeUnauthenticated, "no")
	d.server.fail = &gone
	for err == nil {
		_, err = d.step(r)
	}
	var refused *report.RefusedError
	require.ErrorAs(t, err, &refused)
}
