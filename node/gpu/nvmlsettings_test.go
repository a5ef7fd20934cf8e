//go:build linux && cgo

package gpu_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/gpu"
)

// Settings are those of a GPU before its holder. What cannot be restored is an error that has the evidence; what the
// daemon may not set is said, as its holder could not either.
func TestSettingsAreRestored(t *testing.T) {
	t.Parallel()
	before := buildDriver(t, "-DLIMIT=500000", "-DECC=1", "-DMODE=0")
	for name, c := range map[string]struct {
		after []string
		want  string
	}{
		"nothing has changed":  {[]string{"-DLIMIT=500000", "-DECC=1"}, "settings as before"},
		"the limit was raised": {[]string{"-DLIMIT=700000", "-DECC=1"}, "set as before: power limit"},
		"the mode was changed": {[]string{"-DLIMIT=500000", "-DCOMPUTE=3"}, "set as before: compute mode"},
		"it may not be set": {[]string{"-DLIMIT=700000", "-DSETS=4"},
			"not set as before, which the daemon may not: power limit"},
		"one may be set": {[]string{"-DLIMIT=700000", "-DSETS=4", "-DCOMPUTE=3"},
			"set as before: compute mode; not set as before, which the daemon may not: power limit"},
		"its mode of MIG may not be set": {[]string{"-DLIMIT=500000", "-DMODE=1", "-DSETS=4"},
			"not set as before, which the daemon may not: MIG mode"},
		"its mode of MIG is not set": {[]string{"-DLIMIT=500000", "-DMODE=1"},
			"GPU GPU-1 is not set as before: its MIG mode is 1 instead of 0 (NVML error 0)"},
		"it is not set": {[]string{"-DLIMIT=500000", "-DECC=0"},
			"GPU GPU-1 is not set as before: its ECC mode is 0 instead of 1 (NVML error 0)"},
	} {
		s := gpu.Settings{Command: played("library:" + before).Command, BootID: "boot",
			File: filepath.Join(t.TempDir(), "settings.json")}
		require.NoError(t, s.Remember(t.Context(), []string{"GPU-1"}), "nothing is known yet")
		s.Command = played("library:" + buildDriver(t, "-DLIMIT=1")).Command
		require.NoError(t, s.Remember(t.Context(), []string{"GPU-1"}), "what a holder has set is not remembered")
		s.Command = played("library:" + buildDriver(t, c.after...)).Command
		said, err := s.Restore(t.Context(), []string{"GPU-1", "MIG-1"})
		if err != nil {
			said = err.Error()
		}
		require.Equal(t, c.want, said, name)
	}
}

// What was of an earlier boot is over, MIG devices have no settings, and a driver that cannot be asked is no dirt.
func TestWhatIsNotRestored(t *testing.T) {
	t.Parallel()
	s := gpu.Settings{Command: played("library:" + buildDriver(t, "-DLIMIT=500000")).Command, BootID: "boot",
		File: filepath.Join(t.TempDir(), "settings.json")}
	require.NoError(t, s.Remember(t.Context(), nil))
	later := gpu.Settings{Command: played("library:" + buildDriver(t)).Command, BootID: "another", File: s.File}
	for _, want := range []string{"settings were not known before", "settings as before"} {
		said, err := later.Restore(t.Context(), []string{"GPU-1"})
		require.NoError(t, err)
		require.Equal(t, want, said)
	}
	said, err := later.Restore(t.Context(), []string{"MIG-1"})
	require.NoError(t, err)
	require.Empty(t, said)
	later.Command = played("library:/nonexistent.so").Command
	said, err = later.Restore(t.Context(), []string{"GPU-1"})
	require.NoError(t, err)
	require.Contains(t, said, "settings not read: no NVIDIA driver found")
	require.ErrorIs(t, later.Remember(t.Context(), nil), gpu.ErrNoDriver)
}
