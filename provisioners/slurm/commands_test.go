package slurm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners/slurm"
)

// commandsOf runs a script in the place of what stands before Slurm's commands.
func commandsOf(t *testing.T, script string) slurm.Commands {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "prefix")
	require.NoError(t, os.WriteFile(prefix, []byte("#!/bin/sh\n"+script), 0o700)) //nolint:gosec // a program
	return slurm.NewCommands(slurm.Config{CommandPrefix: []string{prefix}, BinDir: "/opt/slurm/bin",
		SlurmConf: "/etc/slurm.conf"})
}

// A look at a cluster runs as the provisioner's own commands do: in English, with
// times in seconds, and where the config says.
func TestCommandsRunAsTheProvisionersDo(t *testing.T) {
	t.Parallel()
	c := commandsOf(t, `printf '%s\n' "$@"`)
	got, err := c.Run(t.Context(), "scontrol", "show", "config")
	require.NoError(t, err)
	require.Equal(t, "env\nLC_ALL=C\nSLURM_TIME_FORMAT=%s\nSLURM_CONF=/etc/slurm.conf\n/opt/slurm/bin/scontrol\nshow\n"+
		"config\n", got)
}

// The user is asked of the system, not of Slurm's folder.
func TestTheUserOfTheCommands(t *testing.T) {
	t.Parallel()
	name, err := commandsOf(t, `shift 4; [ "$*" = "id -un" ] && echo ada`).User(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ada", name)
}

func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	_, err := commandsOf(t, "echo 'Slurm accounting storage is disabled' >&2; exit 1").Run(t.Context(), "sacct")
	require.EqualError(t, err, "sacct failed: Slurm accounting storage is disabled")
	_, err = slurm.NewCommands(slurm.Config{BinDir: t.TempDir()}).Run(t.Context(), "sacct")
	require.ErrorContains(t, err, "the command sacct is not here")
}
