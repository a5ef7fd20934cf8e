package hold_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/hold"
)

// The work of a holder does not reach the cloud's metadata, whatever its GPUs, unless that is wanted.
func TestAHoldDoesNotReachTheMetadata(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	if err := hold.MetadataReached(k); err != nil {
		t.Skip("addresses cannot be kept from processes here: ", err)
	}
	kept, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-of-no-number"}})
	require.NoError(t, err)
	require.Contains(t, reaches(t, kept, "169.254.169.254"), "Operation not permitted")
	require.NotContains(t, reaches(t, kept, "127.0.0.1"), "Operation not permitted")
	k.Metadata = true
	free, err := k.Open(hold.Hold{AllocationID: alc(2)})
	require.NoError(t, err)
	require.NotContains(t, reaches(t, free, "169.254.169.254"), "Operation not permitted")

	k = keeperIn(t, dir) // a daemon that begins again
	_, err = k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	require.Contains(t, reaches(t, kept, "169.254.169.254"), "Operation not permitted")
	k.EndAll()
}

// reaches connects to a port that nobody listens on as work of a hold does, for a second, and returns what the shell
// says.
func reaches(t *testing.T, p hold.Place, host string) string {
	t.Helper()
	group, err := os.Open(p.Cgroup)
	require.NoError(t, err)
	defer func() { _ = group.Close() }()
	cmd := exec.Command("timeout", "1", "bash", "-c", `: <"/dev/tcp/$1/9"`, "bash", host)
	cmd.Env = []string{"LANG=C", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd()),
		Credential: &syscall.Credential{Uid: p.UID, Gid: p.GID}}
	out, _ := cmd.CombinedOutput()
	return string(out)
}
