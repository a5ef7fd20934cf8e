package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	mostOutput = 16 << 20 // a user's whole queue is a small part of this
	mostErrors = 64 << 10
)

var (
	errNoCommand = errors.New("the command was not found")
	errTooLong   = fmt.Errorf("the answer is longer than %d MiB", mostOutput>>20)
)

// runner runs Slurm's commands: no shell, an environment of its own, bounded in
// time and output.
type runner struct {
	prefix      []string
	remoteShell bool
	bin         string
	slurmConf   string
	timeout     time.Duration
	grace       time.Duration // of what a command leaves behind with its output open
}

func newRunner(c Config) runner {
	remote := c.RemoteShell || len(c.CommandPrefix) > 0 && filepath.Base(c.CommandPrefix[0]) == "ssh"
	return runner{prefix: c.CommandPrefix, remoteShell: remote, bin: c.BinDir, slurmConf: c.SlurmConf,
		timeout: c.Timeout, grace: time.Second}
}

// answer is what a command that ran to its end said.
type answer struct {
	stdout, stderr string
	code           int
}

// receiver takes what a command prints, while it prints. It may have the command ended
// when it has enough.
type receiver interface {
	io.Writer
	endWith(stop func())
	hadEnough() bool
}

// runCommand runs one command. An error means that it did not run to its end, so that
// what it did is not known, except with errNoCommand.
func (r runner) runCommand(ctx context.Context, stdin string, name string, args ...string) (answer, error) {
	stdout := &limited{most: mostOutput}
	got, err := r.runInto(ctx, stdout, stdin, name, args...)
	if err == nil && stdout.cut {
		err = errTooLong
	}
	got.stdout = stdout.kept.String()
	return got, err
}

// runInto is runCommand for output that is taken as it comes. One that was ended because
// its receiver had enough has answered well.
func (r runner) runInto(ctx context.Context, stdout receiver, stdin, name string, args ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	line := r.commandLine(name, args)
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Env = append(inheritedEnv(), r.slurmSettings()...)
	command.Stdin = strings.NewReader(stdin)
	stderr := &limited{most: mostErrors}
	stdout.endWith(cancel)
	command.Stderr = stderr
	// The whole group is killed: ssh and wrappers start processes of their own.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = r.grace
	err := runCopied(command, stdout)
	var exit *exec.ExitError
	switch {
	case stdout.hadEnough():
		return answer{stderr: stderr.kept.String()}, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return answer{}, fmt.Errorf("%w: %w", errNoCommand, err)
	case err != nil && ctx.Err() != nil:
		return answer{}, fmt.Errorf("%s did not end: %w", name, ctx.Err())
	case err != nil && !errors.As(err, &exit):
		return answer{}, fmt.Errorf("running %s: %w", name, err)
	}
	return answer{stderr: stderr.kept.String(), code: command.ProcessState.ExitCode()}, nil
}

// commandLine is the whole command line, with the settings as arguments where the
// environment ends at the prefix.
func (r runner) commandLine(name string, args []string) []string {
	if r.bin != "" {
		name = filepath.Join(r.bin, name)
	}
	line := append([]string{name}, args...)
	if len(r.prefix) == 0 {
		return line
	}
	line = slices.Concat([]string{"env"}, r.slurmSettings(), line)
	if r.remoteShell {
		for i := range line {
			line[i] = shellQuote(line[i])
		}
	}
	return slices.Concat(r.prefix, line)
}

// slurmSettings make Slurm speak English and write times as seconds since 1970: its
// own format has no time zone.
func (r runner) slurmSettings() []string {
	settings := []string{"LC_ALL=C", "SLURM_TIME_FORMAT=%s"}
	if r.slurmConf != "" {
		settings = append(settings, "SLURM_CONF="+r.slurmConf)
	}
	return settings
}

// inheritedEnv is all that a command sees of our own environment: sbatch hands its
// environment to the job, and ours may hold secrets.
func inheritedEnv() []string {
	var environment []string
	for _, name := range []string{"PATH", "HOME", "SLURM_CONF"} {
		if value, set := os.LookupEnv(name); set {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// shellQuote is text as one word of a POSIX shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// limited keeps the beginning of what is written to it and calls stop when
// there is more. The buffer is not embedded: its ReadFrom would read without end.
type limited struct {
	kept bytes.Buffer
	most int
	stop func()
	cut  bool
}

func (l *limited) endWith(stop func()) { l.stop = stop }

func (l *limited) hadEnough() bool { return l.cut }

// Write never fails: a command that talks too much is stopped, not blocked.
func (l *limited) Write(data []byte) (int, error) {
	room := l.most - l.kept.Len()
	if len(data) <= room {
		return l.kept.Write(data)
	}
	l.cut = true
	if l.stop != nil {
		l.stop()
	}
	l.kept.Write(data[:room])
	return len(data), nil
}
