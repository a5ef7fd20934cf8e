package daemon

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// consult runs the doctor on a data directory, and returns what it found, by check.
func consult(t *testing.T, f flags) (map[string]finding, error) {
	t.Helper()
	var out bytes.Buffer
	err := runDoctor(t.Context(), &f, "test", &out, "json")
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
	migrate(t, "--data-dir", f.dataDir)
	return f
}

func migrate(t *testing.T, args ...string) {
	t.Helper()
	cmd := migrateCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
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
	withStore(t, f, func(s *sqlledger.Store) { noteWorker(t, s, time.Minute) })
	found, err := consult(t, f)
	require.NoError(t, err)
	for _, check := range []string{
		"configuration", "pepper", "database", "schema", "keys", "workers", "clock", "upkeep"} {
		require.Equal(t, verdictOK, found[check].Verdict, "%s: %s", check, found[check].Message)
	}
	require.Equal(t, "1 worker is there (on gpu-1), and nothing is late", found["workers"].Message)
	require.Equal(t, verdictSkipped, found["servers"].Verdict)
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

// TestDoctorTellsOfAReadOnlyDatabase, with what mends it.
func TestDoctorTellsOfAReadOnlyDatabase(t *testing.T) {
	f := migrateFresh(t)
	file := filepath.Join(f.dataDir, "forewarm.db")
	require.NoError(t, os.Chmod(file, 0o444)) //nolint:gosec // to be refused
	found, err := consult(t, f)
	require.Error(t, err)
	require.Equal(t, verdictFailed, found["database"].Verdict)
	require.Regexp(t, "^"+file+" is read-only .*chmod u\\+w$", found["database"].Message)
	require.NoError(t, os.Chmod(file, 0o600))
	found, err = consult(t, f)
	require.NoError(t, err)
	require.Equal(t, verdictOK, found["database"].Verdict)
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
	require.Contains(t, found["redis"].Message, "no server answers at its address (connection refused); start it")
	require.Contains(t, found["provisioner"].Message, `"b"`)
	require.Equal(t, verdictOK, found["schema"].Verdict)
}

// TestDoctorMissesPools that scheduling has rules for.
func TestDoctorMissesPools(t *testing.T) {
	f := flags{dataDir: filepath.Join(t.TempDir(), "data"), config: filepath.Join(t.TempDir(), "forewarm.yaml")}
	text := "provisioners: [{kind: sim, config: {name: a}}]\n" +
		"pools: [{name: demo, provisioner: a, region: sim-1, instance_type: sim-a100-8, max_nodes: 1}]\n"
	require.NoError(t, os.WriteFile(f.config, []byte(text+"scheduling: {pools: {demo: {order: arrival}}}\n"), 0o600))
	migrate(t, "--data-dir", f.dataDir, "--config", f.config)
	found, err := consult(t, f)
	require.NoError(t, err)
	require.Equal(t, verdictOK, found["scheduling"].Verdict, found["scheduling"].Message)
	require.NoError(t, os.WriteFile(f.config, []byte(text+"scheduling: {pools: {deom: {order: arrival}}}\n"), 0o600))
	found, err = consult(t, f)
	require.NoError(t, err)
	require.Equal(t, finding{Check: "scheduling", Verdict: verdictWarning,
		Message: `scheduling.pools.deom changes nothing until there is a pool "deom": write demo`}, found["scheduling"])
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
	require.NoError(t, runDoctor(t.Context(), &f, "test", &out, "table"))
	require.Regexp(t, `(?m)^ok       schema        \d+, as this program needs it$`, out.String())
	err := runDoctor(t.Context(), &f, "test", &out, "yaml")
	var usage *exit.Error
	require.ErrorAs(t, err, &usage)
	require.Equal(t, exit.Usage, usage.Code)
}

// withStore changes an installation's database as its processes would.
func withStore(t *testing.T, f flags, change func(*sqlledger.Store)) {
	t.Helper()
	s, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://" + filepath.Join(f.dataDir, "forewarm.db"),
		Clock: clock.System{}})
	require.NoError(t, err)
	change(s)
	require.NoError(t, s.Close())
}

func noteWorker(t *testing.T, s *sqlledger.Store, life time.Duration) {
	t.Helper()
	require.NoError(t, s.InTx(t.Context(), func(tx ledger.Tx) error {
		return tx.NoteWorker(ledger.Worker{ID: "one", Host: "gpu-1"}, life)
	}))
}

// TestDoctorMissesWorkers: those that are gone, and those that never were.
func TestDoctorMissesWorkers(t *testing.T) {
	f := migrateFresh(t)
	found, err := consult(t, f)
	require.NoError(t, err)
	require.Equal(t, verdictWarning, found["workers"].Verdict)
	require.Contains(t, found["workers"].Message, "no worker has been seen yet")
	require.Contains(t, found["workers"].Message, "start forewarm up")
	withStore(t, f, func(s *sqlledger.Store) { noteWorker(t, s, 0) })
	t.Setenv("FOREWARM_REDIS", "redis://127.0.0.1:1")
	found, err = consult(t, f)
	require.Error(t, err, "Redis does not answer")
	require.Equal(t, verdictWarning, found["workers"].Verdict)
	require.Contains(t, found["workers"].Message, "no worker is there; the last one, on gpu-1, was seen ")
	require.Contains(t, found["workers"].Message, "start forewarm worker")
}

// TestDoctorConnectsToServers where there are several, and says how one is made reachable.
func TestDoctorConnectsToServers(t *testing.T) {
	f := migrateFresh(t)
	t.Setenv("FOREWARM_REDIS", "redis://127.0.0.1:1")
	attend := func(id, address string) {
		withStore(t, f, func(s *sqlledger.Store) {
			_, err := s.Attend(t.Context(), ledger.Peer{ID: id, Address: address}, time.Minute)
			require.NoError(t, err)
		})
	}
	look := func() finding {
		found, err := consult(t, f)
		require.Error(t, err, "Redis does not answer")
		return found["servers"]
	}
	require.Contains(t, look().Message, "none is there that others can reach: start forewarm server")
	attend("srv_a", "127.0.0.1:1")
	require.Equal(t, verdictOK, look().Verdict, "there is nobody who would have to reach it")
	attend("srv_b", "127.0.0.1:2")
	got := look()
	require.Equal(t, verdictWarning, got.Verdict)
	require.Contains(t, got.Message, "nothing answers at 127.0.0.1:2 (only its own machine reaches that address)")
	require.Contains(t, got.Message, "set server.peers_listen")
	t.Setenv("FOREWARM_SERVER_PEERS_LISTEN", "off")
	got = look()
	require.Equal(t, verdictWarning, got.Verdict)
	require.Contains(t, got.Message, "server.peers_listen is off here, and 2 other servers are there")
}

// TestDoctorMissesTheProxy of an API that is reached by TLS, which the program does not speak.
func TestDoctorMissesTheProxy(t *testing.T) {
	f := migrateFresh(t)
	t.Setenv("FOREWARM_PUBLIC_URL", "https://forewarm.example.org")
	found, err := consult(t, f)
	require.NoError(t, err)
	require.Equal(t, verdictWarning, found["proxy"].Verdict)
	require.Contains(t, found["proxy"].Message, "server.trusted_proxies names none")
	t.Setenv("FOREWARM_TRUSTED_PROXIES", "127.0.0.1")
	found, err = consult(t, f)
	require.NoError(t, err)
	require.NotContains(t, found, "proxy")
}
