package daemon

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// consult runs the doctor on a data directory, and returns what it found, by check.
func consult(t *testing.T, f flags) (map[string]finding, error) {
	t.Helper()
	var out bytes.Buffer
	err := runDoctor(t.Context(), &f, &out, "json")
	var all []finding
	require.NoError(t, json.Unmarshal(out.Bytes(), &all))
	found := map[string]finding{}
	for _, one := range all {
		found[one.Check] = one
	}
	return found, err
}

// migrateFresh sets an installation up in a directory, and returns its flags.
func migrateFresh(t *testing.T) flags {
	t.Helper()
	f := flags{dataDir: filepath.Join(t.TempDir(), "data")}
	cmd := migrateCommand()
	cmd.SetArgs([]string{"--data-dir", f.dataDir})
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	return f
}

// TestDoctorMakesNothing where nothing was set up, and says so.
func TestDoctorMakesNothing(t *testing.T) {
	f := flags{dataDir: filepath.Join(t.TempDir(), "data")}
	found, err := consult(t, f)
	var failed *exit.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, exit.Failed, failed.Code)
	require.Equal(t, verdictFailed, found["pepper"].Verdict)
	require.Contains(t, found["database"].Message, "run forewarm up or forewarm migrate")
	require.NoDirExists(t, f.dataDir)
}

// TestDoctorOfASoundInstallation finds nothing.
func TestDoctorOfASoundInstallation(t *testing.T) {
	f := migrateFresh(t)
	found, err := consult(t, f)
	require.NoError(t, err)
	for _, check := range []string{
		"configuration", "pepper", "database", "schema", "keys", "workers", "clock", "upkeep"} {
		require.Equal(t, verdictOK, found[check].Verdict, "%s: %s", check, found[check].Message)
	}
	require.Equal(t, verdictSkipped, found["redis"].Verdict)
}

// TestDoctorLeavesTheDatabase as it is, also one that nobody has set up.
func TestDoctorLeavesTheDatabase(t *testing.T) {
	for _, size := range []int{0, -1} {
		f := migrateFresh(t)
		file := filepath.Join(f.dataDir, "forewarm.db")
		if size == 0 {
			require.NoError(t, os.Truncate(file, 0))
		}
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		found, err := consult(t, f)
		require.Equal(t, size == 0, err != nil, found)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after))
		require.NoFileExists(t, file+"-wal")
		if size == 0 {
			require.Contains(t, found["schema"].Message, "run forewarm migrate")
		}
	}
}

// TestDoctorTellsOfOptions in the URL of a file, which would become part of its name.
func TestDoctorTellsOfOptions(t *testing.T) {
	t.Setenv("FOREWARM_DATABASE", "sqlite://"+filepath.Join(t.TempDir(), "x.db")+"?mode=ro")
	found, err := consult(t, flags{dataDir: filepath.Join(t.TempDir(), "data")})
	require.Error(t, err)
	require.Contains(t, found["configuration"].Message, "write sqlite:///path alone")
}

// TestDoctorNamesEachFault once, with what mends it.
func TestDoctorNamesEachFault(t *testing.T) {
	f := migrateFresh(t)
	another := []byte("1:" + strings.Repeat("ab", 32))
	require.NoError(t, os.WriteFile(filepath.Join(f.dataDir, "pepper"), another, 0o600))
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close()) // nobody listens there
	t.Setenv("FOREWARM_REDIS", "redis://"+l.Addr().String())
	f.config = filepath.Join(t.TempDir(), "forewarm.yaml")
	require.NoError(t, os.WriteFile(f.config, []byte("provisioners: [{kind: sim, config: {name: a}}]\n"+
		"pools: [{name: p, provisioner: b, instance_type: sim.a100x8}]\n"), 0o600))

	found, err := consult(t, f)
	require.ErrorContains(t, err, "looks failed")
	require.Contains(t, found["keys"].Message, "bring back the file pepper")
	require.Contains(t, found["redis"].Message, "does not answer")
	require.Contains(t, found["provisioner"].Message, `"b"`)
	require.Equal(t, verdictOK, found["schema"].Verdict)
}

// TestDoctorKnowsWhatAWorkerRefuses: machines that are to call home must know where that is.
func TestDoctorKnowsWhatAWorkerRefuses(t *testing.T) {
	f := migrateFresh(t)
	t.Setenv("FOREWARM_REDIS", "redis://127.0.0.1:1")
	f.config = filepath.Join(t.TempDir(), "forewarm.yaml")
	scripts := filepath.Join(t.TempDir(), "scripts")
	require.NoError(t, os.WriteFile(scripts, []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // it is a program
	require.NoError(t, os.WriteFile(f.config, []byte("provisioners: [{kind: exec, config: {name: a, daemon: true, "+
		"command: ["+scripts+"]}}]\n"), 0o600))
	found, err := consult(t, f)
	require.Error(t, err)
	require.Contains(t, found["provisioner"].Message, "server.public_url")
}

// TestDoctorPrintsLines that can be read, and refuses formats that it does not have.
func TestDoctorPrintsLines(t *testing.T) {
	f := migrateFresh(t)
	var out bytes.Buffer
	require.NoError(t, runDoctor(t.Context(), &f, &out, "table"))
	require.Regexp(t, `(?m)^ok       schema        \d+, as this program needs it$`, out.String())
	err := runDoctor(t.Context(), &f, &out, "yaml")
	var usage *exit.Error
	require.ErrorAs(t, err, &usage)
	require.Equal(t, exit.Usage, usage.Code)
}
