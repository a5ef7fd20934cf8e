//go:build slurm

package slurm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners/slurm"
)

// What a look at a cluster asks, real daemons answer to an ordinary user.
func TestRealLook(t *testing.T) {
	t.Parallel()
	c := slurm.NewCommands(slurm.Config{SlurmConf: os.Getenv("SLURM_CONF"),
		CommandPrefix: []string{"runuser", "-u", "nobody", "--"}})
	user, err := c.User(t.Context())
	require.NoError(t, err)
	require.Equal(t, "nobody", user)
	for ask, want := range map[string]string{"--version": "slurm", "show config": "SuspendTime",
		"--oneliner --all show partition": "PartitionName=", "--oneliner --all show node": "NodeName="} {
		said, err := c.Run(t.Context(), "scontrol", strings.Fields(ask)...)
		require.NoError(t, err)
		require.Contains(t, said, want)
	}
	_, err = c.Run(t.Context(), "sacct", "--allocations")
	require.ErrorContains(t, err, "accounting storage is disabled")
}
