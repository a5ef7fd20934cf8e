package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/local"
	"github.com/forewarm/forewarm/provisioners/local/discover"
)

// starter is a provisioner that starts daemons, or does not.
type starter struct {
	provisioners.Provisioner
	starts, downloads bool
}

func (s starter) StartsDaemons() bool    { return s.starts }
func (s starter) DownloadsDaemons() bool { return s.downloads }

// A daemon that is started on a machine has to know where the control plane is.
func TestDaemonsNeedAnAddress(t *testing.T) {
	t.Parallel()
	a := &app{provs: []provisioners.Provisioner{starter{starts: true}}}
	none := provisioners.DaemonPrograms{}
	require.ErrorContains(t, checkDaemonStarters(a, "", none), "server.public_url")
	require.NoError(t, checkDaemonStarters(a, "https://forewarm.example", none))
	a.provs[0] = starter{}
	require.NoError(t, checkDaemonStarters(a, "", none))
}

// A daemon that is downloaded has to be there, and to come over an encrypted connection.
func TestMachinesDownloadWhatIsHandedOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &app{provs: []provisioners.Provisioner{starter{starts: true, downloads: true}},
		cfg: Config{Server: Server{DownloadDir: dir}}}
	const at = "https://forewarm.example/"
	_, err := a.cfg.findDaemonPrograms(at)
	require.ErrorContains(t, err, "server.download_dir")
	require.ErrorContains(t, checkDaemonStarters(a, at, provisioners.DaemonPrograms{}), "make release/node")

	require.NoError(t, os.WriteFile(filepath.Join(dir, nodeARM64), []byte("program"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, nodeStaticARM64), []byte("static"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	programs, err := a.cfg.findDaemonPrograms(at)
	require.NoError(t, err)
	require.Equal(t, provisioners.DaemonPrograms{
		ARM64: provisioners.DaemonProgram{URL: "https://forewarm.example/download/forewarm-node-linux-arm64",
			SHA256: "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8"},
		StaticARM64: provisioners.DaemonProgram{URL: "https://forewarm.example/download/forewarm-node-static-linux-arm64",
			SHA256: "2053dbbf6ec7135c4e994d3464c478db6f48d3ca21052c8f44915edc96e02c39"}}, programs)
	found, err := a.cfg.findDownloads()
	require.NoError(t, err)
	require.Equal(t, map[string]string{nodeARM64: filepath.Join(dir, nodeARM64),
		nodeStaticARM64: filepath.Join(dir, nodeStaticARM64)}, found, "nothing else")
	require.NoError(t, checkDaemonStarters(a, at, programs))
	require.ErrorContains(t, checkDaemonStarters(a, "http://10.0.0.1:8787", programs), "https://")
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

// noDriver finds no GPUs.
type noDriver struct{}

func (noDriver) Devices(context.Context) ([]capacity.Device, error) { return nil, discover.ErrNoDriver }

// What a machine without GPUs is of no use for is not promised, and who has no pool is told how one is made.
func TestTheGreetingPromisesNothing(t *testing.T) {
	t.Parallel()
	say := func(config local.Config) string {
		host, err := local.New(config, clock.NewManual(time.Unix(0, 0)))
		require.NoError(t, err)
		var out strings.Builder
		printCompanion(t.Context(), newTerminal(&out), host, true)
		return out.String()
	}
	told := say(local.Config{Source: noDriver{}})
	require.NotContains(t, told, "work here")
	require.Contains(t, told, "this machine offers no GPU: ")
	require.Contains(t, told, "install the NVIDIA driver, or set simulate: 4")
	require.Contains(t, say(local.Config{Simulate: 2}), "forewarm exec, port and cp work here")

	require.Equal(t, "pools create --help", firstRequest(nil))
	require.Equal(t, "allocate --pool lab --gpus 1 --for 30m", firstRequest([]Pool{{Name: "lab"}}))
}
