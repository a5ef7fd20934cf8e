package ssh_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// killFromFile ends the process that a file names.
func killFromFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

const nobody = 65_534

// startHolder is a process that has the file open, of a user who is not root.
func startHolder(t *testing.T, file *os.File) *osexec.Cmd {
	process := osexec.Command("sleep", "1000")
	process.ExtraFiles = []*os.File{file}
	if os.Getuid() == 0 {
		process.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	require.NoError(t, process.Start())
	return process
}

// The built-in wipe ends what users left on a device, and nothing else. It is run
// here on files that stand for devices: this machine may have real ones.
func TestClearingDevices(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("remote.sh")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?s)\nclear_gpus='\n(.*?)\n'\n`).FindSubmatch(script)
	require.NotNil(t, found)
	folder := t.TempDir()
	open := func(name string) *os.File {
		file, err := os.Create(filepath.Join(folder, name))
		require.NoError(t, err)
		t.Cleanup(func() { file.Close() })
		return file
	}
	device, another := open("nvidia0"), open("disk")
	user, bystander := startHolder(t, device), startHolder(t, another)
	t.Cleanup(func() {
		require.NoError(t, bystander.Process.Kill())
		_ = bystander.Wait()
	})
	ended := make(chan error)
	go func() { ended <- user.Wait() }() // a zombie holds nothing, but is still listed
	device.Close()
	clearing := osexec.Command("/bin/sh", "-c", string(found[1]))
	clearing.Env = append(os.Environ(), "FOREWARM_DEVICES="+filepath.Join(folder, "nvidia"))
	output, err := clearing.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.True(t, strings.HasPrefix((<-ended).Error(), "signal: terminated"))
	require.NoError(t, bystander.Process.Signal(syscall.Signal(0)), "a bystander was ended")
}
