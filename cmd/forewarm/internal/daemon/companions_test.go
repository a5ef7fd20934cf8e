package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

// starter is a provisioner that starts daemons, or does not.
type starter struct {
	provisioners.Provisioner
	starts bool
}

func (s starter) StartsDaemons() bool { return s.starts }

// A daemon that is started on a machine has to know where the control plane is.
func TestDaemonsNeedAnAddress(t *testing.T) {
	t.Parallel()
	a := &app{provs: []provisioners.Provisioner{starter{starts: true}}}
	require.ErrorContains(t, checkDaemonURL(a, ""), "server.public_url")
	require.NoError(t, checkDaemonURL(a, "https://forewarm.example"))
	a.provs[0] = starter{}
	require.NoError(t, checkDaemonURL(a, ""))
}

func TestReachedHere(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"http://0.0.0.0:80": "http://127.0.0.1:80",
		"http://[::]:8787":   "http://127.0.0.1:8787",
		"http://127.0.0.1:1": "http://127.0.0.1:1", "http://10.0.0.7:1": "http://10.0.0.7:1"} {
		got, err := reachedHere(base)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
