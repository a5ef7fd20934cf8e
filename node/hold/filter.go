package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/addressfilter"
	"github.com/forewarm/forewarm/node/devicefilter"
)

// openWithin is how long a driver may take to open a GPU that nobody uses.
const openWithin = 10 * time.Second

// probeMinor is the number of a GPU that no machine has.
const probeMinor = 200

// aGPU is the device of a GPU of this machine, if it has one, or one that is made for the probe
// in a folder. remove removes what was made.
func aGPU(dir string) (device string, remove func(), ok bool) {
	if all, err := filepath.Glob("/dev/nvidia[0-9]*"); err == nil && len(all) > 0 {
		return all[0], func() {}, true
	}
	device = filepath.Join(dir, "probe-nvidia")
	_ = os.Remove(device)                                                           // of a daemon that was killed here
	err := unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(195, probeMinor))) //nolint:gosec // it is small
	return device, func() { _ = os.Remove(device) }, err == nil
}

// filter has the kernel keep the work of a hold from what is not its.
func (r *record) filter(metadata metadataFilter) error {
	if r.Filtered {
		if err := devicefilter.Attach(r.Cgroup, r.devices()); err != nil {
			return err
		}
	}
	if r.NoMetadata {
		return metadata.attach(r.Cgroup)
	}
	return nil
}

// metadataFilter keeps cgroups from the cloud's metadata, or says why the kernel does not.
type metadataFilter struct {
	*addressfilter.Filter
	missing error
}

func (f metadataFilter) attach(cgroup string) error {
	if f.missing != nil { // an earlier daemon had one
		return fmt.Errorf("keeping work from the cloud's metadata: %w", f.missing)
	}
	return f.Attach(cgroup)
}

// filterMetadata returns a filter that was tried where cgroups are made.
func filterMetadata(cgroups string) (*addressfilter.Filter, error) {
	if cgroups == "" {
		return nil, errors.New("the daemon cannot make cgroups")
	}
	group, err := makeProbe(cgroups)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Rmdir(group) }()
	f, err := addressfilter.Load()
	if err != nil {
		return nil, err
	}
	if err := f.Attach(group); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeProbe makes a cgroup in which filters are tried, which the caller removes.
func makeProbe(cgroups string) (group string, err error) {
	group = filepath.Join(cgroups, "probe")
	_ = syscall.Rmdir(group)                       // of a daemon that was killed here
	if err := os.Mkdir(group, 0o755); err != nil { //nolint:gosec // the kernel's files there have modes of their own
		return "", fmt.Errorf("making a cgroup for a try: %w", err)
	}
	return group, nil
}

// canFilter proves that the kernel keeps a GPU from a cgroup that may not open it: where a
// filter is taken and does nothing, as in a container that has one of its own, nobody would
// notice otherwise.
func canFilter(cgroups, dir string) bool {
	group, err := makeProbe(cgroups)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Rmdir(group) }()
	device, remove, ok := aGPU(dir)
	if !ok {
		return false
	}
	defer remove()
	opened, filtered := triesToOpen(group, device), false
	if devicefilter.Attach(group, devicefilter.Devices{}) == nil {
		filtered = triesToOpen(group, device) == "not permitted"
	}
	return filtered && opened != "not permitted"
}

// triesToOpen opens a device as a process of a cgroup, and returns what the kernel says.
func triesToOpen(group, device string) string {
	dir, err := os.Open(group) //nolint:gosec // our own
	if err != nil {
		return err.Error()
	}
	defer func() { _ = dir.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `: <"$1"`, "sh", device)
	cmd.Env = []string{"LANG=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true,
		CgroupFD: int(dir.Fd())} //nolint:gosec // a descriptor is small
	out, _ := cmd.CombinedOutput()
	if strings.Contains(string(out), "Operation not permitted") {
		return "not permitted"
	}
	return string(out)
}
