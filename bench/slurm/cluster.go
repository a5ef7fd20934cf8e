package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Users of the clusters, whom every system has: one who submits jobs, and Forewarm's.
const (
	person = "daemon"
	ours   = "nobody"
)

// cluster is a private Slurm cluster of real daemons, which scripts/with-slurm runs.
type cluster struct {
	name    string
	suspend time.Duration
	dir     string
	conf    string
	process *exec.Cmd
	input   io.Closer // at its end the cluster ends

	mu        sync.Mutex
	submitted map[string]time.Time // by name, when its user pressed return
	running   sync.WaitGroup
	refused   []error
}

// startCluster starts an arm's cluster, whose idle nodes lose power after suspend.
func startCluster(ctx context.Context, o options, name string, suspend time.Duration) (*cluster, error) {
	c := &cluster{name: name, suspend: suspend, submitted: map[string]time.Time{}}
	c.process = exec.CommandContext(ctx, o.withSlurm, "sh", "-c", //nolint:gosec // what the caller named
		`printf "%s\n%s\n" "$SLURM_CONF" "$FOREWARM_TEST_SLURM"; exec cat >/dev/null`)
	c.process.Cancel = func() error { return c.input.Close() }
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is ours alone
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
	c.process.Env = append(os.Environ(), "FOREWARM_SLURM_CLOUD="+strconv.Itoa(o.nodes),
		"FOREWARM_SLURM_BOOT="+seconds(o.boot), "FOREWARM_SLURM_SUSPEND="+seconds(suspend),
		"FOREWARM_SLURM_RESUME=120", "FOREWARM_SLURM_FORGET=300", "FOREWARM_SLURM_PRIVATE=cloud")
	c.process.Stderr = os.Stderr
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the cluster %s: %w", name, err)
	}
	if c.input, err = c.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the cluster %s: %w", name, err)
	}
	if err := c.process.Start(); err != nil {
		return nil, fmt.Errorf("starting the cluster %s: %w", name, err)
	}
	if _, err := fmt.Fscanf(bufio.NewReader(out), "%s\n%s\n", &c.conf, &c.dir); err != nil {
		return nil, errors.Join(fmt.Errorf("the cluster %s did not start: %w", name, err), c.stop())
	}
	return c, c.writeWork()
}

// writeWork writes the program that every job runs: it notes when its user's work
// begins, and where.
func (c *cluster) writeWork() error {
	stamps := filepath.Join(c.dir, "stamps")
	if err := os.Mkdir(stamps, 0o700); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	if err := os.Chmod(stamps, 0o777|os.ModeSticky); err != nil { //nolint:gosec // jobs are of another user
		return fmt.Errorf("opening a folder for the jobs: %w", err)
	}
	text := "#!/bin/sh\nat=$(date +%s.%N)\n" +
		"id=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}\n" +
		`echo "$at $SLURM_JOB_ID ${id:-$SLURM_JOB_ID}" >"` + stamps + `/$1.${SLURM_ARRAY_TASK_ID:-1}"` + "\n" +
		`exec sleep "$2"` + "\n"
	return os.WriteFile(c.workProgram(), []byte(text), 0o755) //nolint:gosec // jobs are of another user
}

func (c *cluster) workProgram() string { return filepath.Join(c.dir, "work") }

// stop ends the cluster and waits for it.
func (c *cluster) stop() error {
	_ = c.input.Close()
	if err := c.process.Wait(); err != nil {
		return fmt.Errorf("the cluster %s: %w", c.name, err)
	}
	return nil
}

// command is one of Slurm's, as a user.
func (c *cluster) command(ctx context.Context, user string, args ...string) *exec.Cmd {
	//nolint:gosec // our own cluster
	cmd := exec.CommandContext(ctx, "runuser", append([]string{"-u", user, "--"}, args...)...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf, "SLURM_TIME_FORMAT=%s", "LC_ALL=C")
	cmd.Dir = "/"
	return cmd
}

// submit does what a user does, at once, and goes on while salloc and srun run.
func (c *cluster) submit(ctx context.Context, s submission, length time.Duration) {
	c.mu.Lock()
	c.submitted[s.name] = time.Now()
	c.mu.Unlock()
	c.running.Go(func() {
		said, err := c.command(ctx, person, c.commandLine(s, length)...).CombinedOutput()
		if err != nil && ctx.Err() == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.refused = append(c.refused, fmt.Errorf("%s in %s: %w: %.300s", s.name, c.name, err, said))
		}
	})
}

// commandLine is what the user types.
func (c *cluster) commandLine(s submission, length time.Duration) []string {
	work := []string{c.workProgram(), s.name, fmt.Sprintf("%.1f", length.Seconds())}
	common := []string{"--partition=elastic", "--chdir=/", "--job-name=" + s.name}
	gpus := fmt.Sprintf("--gres=gpu:%d", s.gpus)
	whole := append([]string{"sbatch", "--parsable", "--output=/dev/null"}, common...)
	script := "--wrap=" + strings.Join(work, " ")
	switch s.kind {
	case array:
		return append(whole, gpus, fmt.Sprintf("--array=1-%d", s.tasks), script)
	case gang:
		return append(whole, fmt.Sprintf("--nodes=%d", s.nodes), fmt.Sprintf("--gpus-per-node=%d", s.gpus), script)
	case interactive:
		return slices.Concat([]string{"salloc"}, common, []string{gpus, "srun"}, work)
	case direct:
		return slices.Concat([]string{"srun"}, common, []string{gpus}, work)
	default:
		return append(whole, gpus, script)
	}
}

// endAll waits for the jobs of the users, and for those commands that are still there.
func (c *cluster) endAll(ctx context.Context) error {
	c.running.Wait()
	for ctx.Err() == nil {
		said, err := c.command(ctx, person, "squeue", "--noheader", "--user="+person,
			"--states=PENDING,CONFIGURING,RUNNING,COMPLETING", "--format=%i").Output()
		if err == nil && len(strings.TrimSpace(string(said))) == 0 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return errors.Join(c.refused...)
		}
		time.Sleep(time.Second)
	}
	return fmt.Errorf("jobs in %s do not end: %w", c.name, ctx.Err())
}
