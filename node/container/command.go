package container

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The labels by which containers are found.
const (
	allocationLabel = "forewarm.allocation"
	jobLabel        = "forewarm.job"
)

// Command is the command line that runs a job in a container, to its end. asRoot says that the daemon's
// user runs it, with none of the job's variables; else the holder's does, with all.
func (r Runtime) Command(j Job) (line []string, asRoot bool, err error) {
	if err := r.Check(j); err != nil {
		return nil, false, err
	}
	if r.Name == Apptainer {
		return r.apptainer(j), false, nil
	}
	text := strings.Join(j.Environment, "\n") + "\n"
	if err := os.WriteFile(j.environmentFile(), []byte(text), 0o600); err != nil {
		return nil, false, fmt.Errorf("writing the variables of a container: %w", err)
	}
	return r.engine(j), true, nil
}

func (j Job) environmentFile() string { return filepath.Join(j.Folder, "container.env") }

// The files by which an engine says that there is a container: podman once it runs, docker once it was made.
func (j Job) pidFile() string { return filepath.Join(j.Folder, "container.pid") }

func (j Job) idFile() string { return filepath.Join(j.Folder, "container.id") }

// apptainer runs the image's files with nothing of the node but the job's folder and what is mounted. Its
// processes are the holder's, in the cgroup and the process group of any command.
func (r Runtime) apptainer(j Job) []string {
	line := []string{r.Path, "exec", "--contain", "--no-home", "--bind", j.Home, "--pwd", j.Directory}
	for _, m := range j.Mounts {
		line = append(line, "--bind", bind(m.Source, m.Target, m.ReadOnly))
	}
	if len(j.realGPUs()) > 0 {
		line = append(line, "--nv") // and the cgroup of the hold opens no others
	}
	image := j.Image
	if !strings.HasPrefix(image, "/") && !strings.Contains(image, "://") {
		image = "docker://" + image
	}
	return append(append(line, image), j.Command...)
}

// engine is a command line of podman or docker. The first process is one that waits for others and hands
// signals on: without it, what a shell starts would be deaf to TERM.
func (r Runtime) engine(j Job) []string {
	user := fmt.Sprintf("%d:%d", j.UID, j.GID)
	line := []string{r.Path, "run", "--rm", "--interactive", "--init", "--name", j.Name,
		"--label", allocationLabel + "=" + j.Allocation, "--label", jobLabel + "=" + j.Name,
		"--user", user, "--cap-drop", "all", "--security-opt", "no-new-privileges",
		"--network", "host", "--ipc", "host", "--env-file", j.environmentFile(), "--log-driver", "none",
		"--volume", j.Home + ":" + j.Home, "--workdir", j.Directory, "--entrypoint", ""}
	line = append(line, limits()...)
	for _, m := range j.Mounts {
		line = append(line, "--volume", bind(m.Source, m.Target, m.ReadOnly))
	}
	gpus := j.realGPUs()
	if r.Name == Podman {
		line = append(line, "--cgroups", "disabled", "--pidfile", j.pidFile()) // it stays in the job's cgroup
		for _, uuid := range gpus {
			line = append(line, "--device", "nvidia.com/gpu="+uuid)
		}
	} else {
		line = append(line, "--cidfile", j.idFile())
		if parent, ok := strings.CutPrefix(j.Cgroup, cgroups); ok && r.Cgroups {
			line = append(line, "--cgroup-parent", parent)
		}
		if len(gpus) > 0 {
			line = append(line, "--gpus", quoted("device="+strings.Join(gpus, ",")))
		}
	}
	return append(append(line, j.Image), j.Command...)
}

// cgroups is where the kernel's cgroups are, which docker names without it.
const cgroups = "/sys/fs/cgroup"

// quoted is a value that has commas, where docker would take them for the next one's.
func quoted(value string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{value}) // to memory
	w.Flush()
	return strings.TrimSpace(b.String())
}

func bind(source, target string, readOnly bool) string {
	if target == "" {
		target = source
	}
	if readOnly {
		return source + ":" + target + ":ro"
	}
	return source + ":" + target
}

// realGPUs are those that a driver has: simulated ones cannot be passed to anybody.
func (j Job) realGPUs() (all []string) {
	for _, uuid := range j.GPUUUIDs {
		if strings.HasPrefix(uuid, "MIG-") || strings.HasPrefix(uuid, "GPU-") && !strings.HasPrefix(uuid, "GPU-SIM-") {
			all = append(all, uuid)
		}
	}
	return all
}

// limits are what this process may have, which the engines would raise for what they start: the bound of
// processes is the hold's.
func limits() (line []string) {
	for name, which := range map[string]int{"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC} {
		var l unix.Rlimit
		if unix.Getrlimit(which, &l) == nil && l.Max < 1<<31 {
			line = append(line, "--ulimit", name+"="+strconv.FormatUint(l.Cur, 10)+":"+strconv.FormatUint(l.Max, 10))
		}
	}
	return line
}
