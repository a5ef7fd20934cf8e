// Package container runs a job's command in a container, by the programs that nodes have for it:
// apptainer, podman and docker.
//
// Each is started as the job's command is, and stays until the container has ended. apptainer runs as the
// holder's user, so that its containers are processes like others. podman runs as root, in the cgroup of the job, and
// its containers, whose processes have the holder's user and no capabilities, stay in that cgroup. docker has
// a daemon of its own, in whose cgroup its containers are: it is used only where the operator names it.
//
// What a container needs after its processes, such as mounts, is removed by its name when the job ends, and
// by its allocation when the hold does, which is not clean before none is left.
package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// The programs that run containers.
const (
	Apptainer = "apptainer"
	Podman    = "podman"
	Docker    = "docker"
)

var known = []string{Apptainer, Podman, Docker}

// Usual is which of them are looked for, in this order, where the configuration names none.
const Usual = Apptainer + "," + Podman

// Mount is a folder of the node that jobs may have in their containers.
type Mount struct {
	Path     string
	ReadOnly bool
}

// Config is what a node allows, as its operator writes it.
type Config struct {
	Runtimes string // words of the constants above, with commas; empty or "none": none
	Mounts   string // folders, with commas; each may end with :ro
}

// Runtime runs containers on this node. Its zero value runs none.
type Runtime struct {
	Name   string  `json:"name"` // one of the programs
	Path   string  `json:"path"`
	Mounts []Mount `json:"mounts,omitempty"`
	// Cgroups says that docker takes any cgroup for a container, and not systemd's alone.
	Cgroups bool `json:"cgroups,omitempty"`
}

// Find returns the first program that is there, and works, of those that are allowed; the zero value: none is.
// asRoot says that the daemon can give containers users of their own, which podman and docker need.
func Find(cfg Config, asRoot bool) (Runtime, error) {
	names, err := cfg.names()
	if err != nil {
		return Runtime{}, err
	}
	mounts, err := cfg.mounts()
	if err != nil {
		return Runtime{}, err
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil && filepath.IsAbs(path) && (asRoot || name == Apptainer) {
			r := Runtime{Name: name, Path: path, Mounts: mounts}
			if r.examine() {
				return r, nil
			}
		}
	}
	return Runtime{}, nil
}

// examine learns what an engine can do here, and reports whether that is enough: podman leaves containers in a
// cgroup of ours only where all is version 2, and docker is nothing without its daemon.
func (r *Runtime) examine() bool {
	switch r.Name {
	case Podman:
		said, err := r.ask("info", "--format", "json")
		var info struct {
			Host struct{ CgroupVersion string }
		}
		return err == nil && json.Unmarshal([]byte(said), &info) == nil && info.Host.CgroupVersion == "v2"
	case Docker:
		driver, err := r.ask("info", "--format", "{{.CgroupDriver}}")
		r.Cgroups = driver == "cgroupfs"
		return err == nil
	}
	return true
}

func (c Config) names() ([]string, error) {
	if c.Runtimes == "" || c.Runtimes == "none" {
		return nil, nil
	}
	names := strings.Split(c.Runtimes, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("container_runtime: %q: must be none, or words of %s, with commas", name,
				strings.Join(known, ", "))
		}
	}
	return names, nil
}

func (c Config) mounts() (all []Mount, err error) {
	if c.Mounts == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(c.Mounts, ",") {
		path, readOnly := strings.CutSuffix(text, ":ro")
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsAny(path, ":,\n\"") {
			return nil, fmt.Errorf("container_mounts: %q: must be folders such as /data, or /data:ro, with commas", text)
		}
		all = append(all, Mount{Path: path, ReadOnly: readOnly})
	}
	return all, nil
}

// Check reports what is wrong with the configuration.
func (c Config) Check() error {
	_, err := c.names()
	_, wrong := c.mounts()
	return errors.Join(err, wrong)
}

// errNone says why a job with an image cannot run on a node.
var errNone = errors.New("the node runs no containers: an operator installs apptainer or podman there, or sets " +
	"container_runtime")

// Job is what a container is for.
type Job struct {
	Name        string // of the container, as no other one has it
	Allocation  string
	Image       string
	Mounts      []contract.JobMount
	Command     []string
	Directory   string
	Home        string // the job's own folder, which it has at the same place
	Environment []string
	UID, GID    uint32
	GPUUUIDs    []string
	Folder      string // for files that the program reads and writes, which nobody else can
	Cgroup      string // of the hold, if it is bounded
}

// Check reports why a job cannot run in a container here.
func (r Runtime) Check(j Job) error {
	if r.Name == "" {
		return errNone
	}
	if err := r.checkImage(j.Image); err != nil {
		return err
	}
	for _, m := range j.Mounts {
		if strings.ContainsAny(m.Target, ":,\n\"") { // which part the mounts of a command line
			return fmt.Errorf("the folder %s cannot be mounted at %q: it has a colon, a comma, a quote or a line break",
				m.Source, m.Target)
		}
		i := slices.IndexFunc(r.Mounts, func(a Mount) bool { return a.Path == m.Source })
		switch {
		case i < 0:
			return fmt.Errorf("the folder %s may not be mounted: its node allows %s (container_mounts)", m.Source, r.allowed())
		case r.Mounts[i].ReadOnly && !m.ReadOnly:
			return fmt.Errorf("the folder %s may be mounted for reading only: add :ro", m.Source)
		}
	}
	if r.Name != Apptainer {
		for _, v := range j.Environment {
			if name, value, _ := strings.Cut(v, "="); strings.ContainsAny(value, "\r\n") {
				return fmt.Errorf("the variable %s has a line break, which %s cannot give a container", name, r.Name)
			}
		}
	}
	return nil
}

func (r Runtime) allowed() string {
	if len(r.Mounts) == 0 {
		return "none"
	}
	var all []string
	for _, m := range r.Mounts {
		all = append(all, m.Path)
	}
	return strings.Join(all, ", ")
}

// transports are words that podman reads before a colon as where an image is, such as a file of the node, which
// it would read as root.
var transports = []string{"containers-storage", "dir", "docker-archive", "docker-daemon", "oci", "oci-archive",
	"ostree", "sif", "tarball", "atomic", "docker", "oras", "http", "https"}

// checkImage reports why an image cannot be used. apptainer reads what the holder may read; the others run
// as root, so that they get names of a registry only.
func (r Runtime) checkImage(image string) error {
	if strings.HasPrefix(image, "-") || strings.ContainsAny(image, " \r\n") {
		return fmt.Errorf("%q is no image", image)
	}
	if r.Name == Apptainer {
		return nil
	}
	word, _, _ := strings.Cut(image, ":")
	if strings.HasPrefix(image, "/") || strings.Contains(image, "://") || slices.Contains(transports, word) {
		return fmt.Errorf("%s on the node takes names of a registry, such as docker.io/library/python:3.12, and not %q",
			r.Name, image)
	}
	return nil
}
