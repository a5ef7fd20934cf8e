package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/container"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/work"
)

// box is the container of an attempt.
type box struct {
	runtime container.Runtime
	job     container.Job
}

// boxed is the container of an attempt; nil: it runs in none.
func (a accepted) boxed(dir folder, c work.Command) *box {
	o, place := a.Order, a.Place
	if o.Image == "" {
		return nil
	}
	j := container.Job{Name: "forewarm-" + nameOf(o.JobKey) + "-" + fmt.Sprint(o.Rank), Allocation: o.AllocationID,
		Image: o.Image, Mounts: o.Mounts, Command: o.Command, Directory: c.Directory, Home: place.Home,
		UID: place.UID, GID: place.GID, GPUUUIDs: o.GPUUUIDs, Folder: string(dir), Cgroup: place.JobCgroups}
	if !filepath.IsAbs(j.Directory) {
		j.Directory = filepath.Join(place.Home, j.Directory)
	}
	for _, v := range work.EnvironmentOf(place, c) {
		name, _, _ := strings.Cut(v, "=")
		if _, asked := c.Environment[name]; asked || name != "PATH" && name != "SHELL" { // which are the image's to say
			j.Environment = append(j.Environment, v)
		}
	}
	return &box{runtime: a.Containers, job: j}
}

// enter is what is started in place of the command, and where.
func (b *box) enter(place hold.Place, c work.Command) (hold.Place, work.Command, error) {
	line, asRoot, err := b.runtime.Command(b.job)
	if err != nil {
		return place, c, err
	}
	if !asRoot {
		c.Arguments, c.Directory = line, "" // the folder is one of the container's
		return place, c, nil
	}
	// Nothing that the holder chooses may reach a program that runs as root.
	outside := hold.Place{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), //nolint:gosec // the kernel's are 32 bits
		Home: "/", Cgroup: place.Cgroup, Mark: place.Mark, Launcher: place.Launcher}
	return outside, work.Command{Arguments: line, Directory: "/",
		Group: func() int { return b.runtime.Group(b.job) }}, nil
}

// refused is why the container has not begun, although its program was started; empty: it has.
func (b *box) refused(end session.End) string {
	if b == nil || end.ExitCode == 0 || end.Signal != "" || b.runtime.Started(b.job) {
		return ""
	}
	return fmt.Sprintf("%s could not start a container of %s (exit code %d): its output says why", b.runtime.Name,
		b.job.Image, end.ExitCode)
}

// remove removes what is left of the container. Where that fails, the end of the hold tries again, and is not
// clean before.
func (b *box) remove() { _ = b.runtime.Remove(b.job) }
