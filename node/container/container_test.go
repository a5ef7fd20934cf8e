package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/container"
)

// says is what engines say of themselves.
var says = map[string]string{"podman": `{"host":{"cgroupVersion":"v2"}}`, "docker": "cgroupfs"}

// onPath puts programs of these names, which say that, in place of all others.
func onPath(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		script := []byte("#!/bin/sh\necho '" + says[name] + "'\n")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), script, 0o755)) //nolint:gosec // it is run
	}
	t.Setenv("PATH", dir)
	return dir
}

func TestTheFirstProgramThatIsThereAndAllowed(t *testing.T) {
	dir := onPath(t, "podman", "docker")
	for _, c := range []struct {
		allowed string
		asRoot  bool
		want    string
	}{
		{container.Usual, true, "podman"}, {container.Usual, false, ""}, {"docker,podman", true, "docker"},
		{"apptainer", true, ""}, {"none", true, ""}, {"", true, ""},
	} {
		got, err := container.Find(container.Config{Runtimes: c.allowed}, c.asRoot)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Name, c.allowed)
		if c.want != "" {
			require.Equal(t, filepath.Join(dir, c.want), got.Path)
			require.Equal(t, c.want == "docker", got.Cgroups)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "podman"), []byte("#!/bin/sh\necho '{}'\n"), 0o600))
	got, err := container.Find(container.Config{Runtimes: "podman,docker"}, true)
	require.NoError(t, err)
	require.Equal(t, "docker", got.Name, "one of a machine with cgroup v1 is of no use")
	onPath(t, "podman", "apptainer")
	got, err = container.Find(container.Config{Runtimes: container.Usual}, false)
	require.NoError(t, err)
	require.Equal(t, "apptainer", got.Name, "it needs no root")
}

func TestWrongConfigurationsSayWhatIsRight(t *testing.T) {
	for want, c := range map[string]container.Config{
		`container_runtime: "lxc": must be none, or words of apptainer, podman, docker, with commas`: {Runtimes: "lxc"},
		`container_mounts: "data": must be folders such as /data, or /data:ro, with commas`:          {Mounts: "data"},
		`container_mounts: "/a/../b": must be folders such as /data, or /data:ro, with commas`:       {Mounts: "/a/../b"},
		`container_mounts: "/": must be folders such as /data, or /data:ro, with commas`:             {Mounts: "/data,/"},
	} {
		require.ErrorContains(t, c.Check(), want)
	}
	require.NoError(t, container.Config{Runtimes: "podman,docker", Mounts: "/data:ro,/scratch"}.Check())
}

func job(t *testing.T) container.Job {
	return container.Job{Name: "forewarm-job_1-1-0", Allocation: "alc_1", Image: "python:3.12",
		Command: []string{"python3", "train.py", "--fast"}, Directory: "/holds/alc_1/src", Home: "/holds/alc_1",
		Environment: []string{"A=1 2", "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2"}, UID: 1900000001, GID: 1900000001,
		GPUUUIDs: []string{"GPU-1", "GPU-2", "GPU-SIM-3"}, Folder: t.TempDir(),
		Mounts: []contract.JobMount{{Source: "/data", ReadOnly: true}, {Source: "/scratch", Target: "/tmp/fast"}}}
}

func runtime(name string) container.Runtime {
	return container.Runtime{Name: name, Path: "/usr/bin/" + name, Cgroups: true,
		Mounts: []container.Mount{{Path: "/data", ReadOnly: true}, {Path: "/scratch"}}}
}

func TestApptainerRunsAsTheHolder(t *testing.T) {
	line, asRoot, err := runtime("apptainer").Command(job(t))
	require.NoError(t, err)
	require.False(t, asRoot)
	require.Equal(t, "/usr/bin/apptainer exec --contain --no-home --bind /holds/alc_1 --pwd /holds/alc_1/src "+
		"--bind /data:/data:ro --bind /scratch:/tmp/fast --nv docker://python:3.12 python3 train.py --fast",
		strings.Join(line, " "))
	j := job(t)
	j.Image, j.GPUUUIDs, j.Mounts = "/images/train.sif", []string{"GPU-SIM-1"}, nil
	line, _, err = runtime("apptainer").Command(j)
	require.NoError(t, err)
	require.Equal(t, "/usr/bin/apptainer exec --contain --no-home --bind /holds/alc_1 --pwd /holds/alc_1/src "+
		"/images/train.sif python3 train.py --fast", strings.Join(line, " "))
}

func TestPodmanAndDockerRunAsRootAndTheirContainersDoNot(t *testing.T) {
	for name, want := range map[string]string{
		"podman": "--cgroups disabled --pidfile FOLDER/container.pid --device nvidia.com/gpu=GPU-1 " +
			"--device nvidia.com/gpu=GPU-2 python:3.12 python3 train.py --fast",
		"docker": `--cidfile FOLDER/container.id --cgroup-parent /forewarm-holds/alc_1-7 ` +
			`--gpus "device=GPU-1,GPU-2" python:3.12 python3 train.py --fast`,
	} {
		j := job(t)
		j.Cgroup = "/sys/fs/cgroup/forewarm-holds/alc_1-7"
		line, asRoot, err := runtime(name).Command(j)
		require.NoError(t, err)
		require.True(t, asRoot)
		text := strings.ReplaceAll(strings.Join(line, " "), j.Folder, "FOLDER")
		for _, part := range []string{"/usr/bin/" + name + " run --rm --interactive --init --name forewarm-job_1-1-0 " +
			"--label forewarm.allocation=alc_1 --label forewarm.job=forewarm-job_1-1-0 --user 1900000001:1900000001 " +
			"--cap-drop all --security-opt no-new-privileges --network host --ipc host --env-file FOLDER/container.env",
			"--volume /holds/alc_1:/holds/alc_1 --workdir /holds/alc_1/src --entrypoint  ",
			"--volume /data:/data:ro --volume /scratch:/tmp/fast " + want} {
			require.Contains(t, text, part)
		}
		require.NotContains(t, text, "A=1", "arguments are for everybody to read")
		variables, err := os.ReadFile(filepath.Join(j.Folder, "container.env"))
		require.NoError(t, err)
		require.Equal(t, "A=1 2\nCUDA_VISIBLE_DEVICES=GPU-1,GPU-2\n", string(variables))
	}
}

func TestWhatMayNotRunSaysWhy(t *testing.T) {
	for want, change := range map[string]func(*container.Job){
		"the folder /etc may not be mounted: its node allows /data, /scratch (container_mounts)": func(j *container.Job) {
			j.Mounts[0].Source = "/etc"
		},
		"the folder /data/x may not be mounted": func(j *container.Job) { j.Mounts[0].Source = "/data/x" },
		"the folder /data may be mounted for reading only: add :ro": func(j *container.Job) {
			j.Mounts[0].ReadOnly = false
		},
		"the variable B has a line break, which podman cannot give a container": func(j *container.Job) {
			j.Environment = append(j.Environment, "B=1\n--privileged")
		},
		`names of a registry, such as docker.io/library/python:3.12, and not "dir:/etc"`: func(j *container.Job) {
			j.Image = "dir:/etc"
		},
		`and not "oci:x"`:                  func(j *container.Job) { j.Image = "oci:x" },
		`and not "/x.sif"`:                 func(j *container.Job) { j.Image = "/x.sif" },
		`and not "docker-archive:///etc/x`: func(j *container.Job) { j.Image = "docker-archive:///etc/x" },
		`"--privileged" is no image`:       func(j *container.Job) { j.Image = "--privileged" },
	} {
		j := job(t)
		change(&j)
		_, _, err := runtime("podman").Command(j)
		require.ErrorContains(t, err, want)
	}
	_, _, err := container.Runtime{}.Command(job(t))
	require.ErrorContains(t, err, "the node runs no containers")
}
