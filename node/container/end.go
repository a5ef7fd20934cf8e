package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// askWithin is how long an engine may take to answer.
const askWithin = 30 * time.Second

// ask runs an engine as the daemon's user, and returns what it prints.
func (r Runtime) ask(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Path, arguments...) //nolint:gosec // the operator's program
	var words bytes.Buffer
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = "/", &words, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.Output()
	if err != nil {
		said := strings.TrimSpace(words.String())
		return "", fmt.Errorf("%s %s: %w: %s", r.Name, arguments[0], err, said[:min(len(said), 200)])
	}
	return strings.TrimSpace(string(out)), nil
}

// hasRests reports whether containers of this runtime leave anything but processes and files of their user.
func (r Runtime) hasRests() bool { return r.Name == Podman || r.Name == Docker }

// Remove ends and removes the container of a job, if it is there.
func (r Runtime) Remove(j Job) error {
	if !r.hasRests() {
		return nil
	}
	err := r.removeAll(jobLabel + "=" + j.Name)
	return errors.Join(err, ignoreMissing(os.Remove(j.environmentFile())), ignoreMissing(os.Remove(j.pidFile())),
		ignoreMissing(os.Remove(j.idFile())))
}

// RemoveOf ends and removes the containers of an allocation, and proves that none is left.
func (r Runtime) RemoveOf(allocationID string) error {
	if !r.hasRests() {
		return nil
	}
	return r.removeAll(allocationLabel + "=" + allocationID)
}

func (r Runtime) removeAll(label string) error {
	list := []string{"ps", "--all", "--quiet", "--no-trunc", "--filter", "label=" + label}
	for tries := 0; ; tries++ {
		ids, err := r.ask(list...)
		if err != nil || ids == "" {
			return err
		}
		if tries == 2 {
			return fmt.Errorf("%s does not remove the containers %s", r.Name, strings.Join(strings.Fields(ids), " "))
		}
		remove := []string{"rm", "--force"}
		if r.Name == Podman { // which asks first, and waits ten seconds; docker kills
			remove = append(remove, "--time", "0")
		}
		remove = append(remove, strings.Fields(ids)...)
		if _, err := r.ask(remove...); err != nil && tries == 1 {
			return err
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Started reports whether a container has begun: before, what its engine ends with is its own.
func (r Runtime) Started(j Job) bool {
	var says string
	switch r.Name {
	case Podman:
		says = j.pidFile()
	case Docker:
		says = j.idFile()
	default:
		return true
	}
	_, err := os.Stat(says)
	return err == nil
}

// Group is the process group of a job's command in its container, as the node's kernel numbers it; 0: there is none
// that is known, or it is that of the runtime itself.
func (r Runtime) Group(j Job) int {
	var text string
	switch r.Name {
	case Podman:
		data, _ := os.ReadFile(j.pidFile())
		text = string(data)
	case Docker:
		text, _ = r.ask("inspect", "--format", "{{.State.Pid}}", j.Name)
	}
	first, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || first <= 1 {
		return 0
	}
	pid := strconv.Itoa(first)
	children, _ := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children")) //nolint:gosec // the kernel's
	for child := range strings.FieldsSeq(string(children)) {
		n, err := strconv.Atoi(child)
		if group, failed := syscall.Getpgid(n); err == nil && failed == nil && group == n && isOf(n, j.UID) {
			return group // the command leads its own
		}
	}
	return 0
}

// isOf reports whether a process has a user: the number of one that is gone may be another's.
func isOf(pid int, uid uint32) bool {
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uid
}
