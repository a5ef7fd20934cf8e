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
	"strings"
	"sync"
	"syscall"
	"time"
)

// partitions are those of scripts/with-slurm whose nodes have power, each of 8 cores.
const partitions = "n1,n2,n3,n4,n5"

// cluster is a private Slurm cluster of real daemons.
type cluster struct {
	process   *exec.Cmd
	input     io.Closer // at its end the cluster ends
	conf      string
	completed string // Slurm's own log of all jobs that ended
}

func startCluster(ctx context.Context) (*cluster, error) {
	c := &cluster{process: exec.CommandContext(ctx, *withSlurm, "sh", "-c", //nolint:gosec // what the caller named
		`printf "%s\n%s\n" "$SLURM_CONF" "$FOREWARM_TEST_SLURM"; exec cat >/dev/null`)}
	c.process.Cancel = func() error { return c.input.Close() }
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is ours alone
	c.process.Stderr = os.Stderr
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting Slurm: %w", err)
	}
	if c.input, err = c.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting Slurm: %w", err)
	}
	if err := c.process.Start(); err != nil {
		return nil, fmt.Errorf("starting Slurm: %w", err)
	}
	lines := bufio.NewScanner(out)
	for _, to := range []*string{&c.conf, &c.completed} {
		if !lines.Scan() {
			return nil, errors.Join(errors.New("the Slurm cluster did not start"), c.stop())
		}
		*to = lines.Text()
	}
	c.completed = filepath.Join(c.completed, "completed")
	return c, nil
}

func (c *cluster) stop() error {
	return errors.Join(c.input.Close(), c.process.Wait())
}

// measureRate returns how many jobs were run in a second, from the first submission to the last
// that the cluster wrote down.
func (c *cluster) measureRate(ctx context.Context, connections int) (perSecond float64, err error) {
	from := time.Now()
	ids, err := c.submit(ctx, connections)
	if err != nil {
		return 0, err
	}
	for until := time.Now().Add(patience); ; {
		done, err := c.countCompleted(ids)
		switch {
		case err != nil:
			return 0, err
		case done == len(ids):
			return float64(done) / time.Since(from).Seconds(), nil
		case time.Now().After(until):
			return 0, fmt.Errorf("only %d of %d jobs of Slurm have ended after %v", done, len(ids), patience)
		}
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// submit calls sbatch for each job, so many at a time, and returns their ids.
func (c *cluster) submit(ctx context.Context, atOnce int) (ids map[string]bool, err error) {
	ids = map[string]bool{}
	var mu sync.Mutex
	var group sync.WaitGroup
	turns := make(chan int)
	for range atOnce {
		group.Go(func() {
			for range turns {
				//nolint:gosec // the installed program
				cmd := exec.CommandContext(ctx, "sbatch", "--parsable", "--wrap=true", "--output=/dev/null", "--chdir=/",
					"--ntasks=1", "--partition="+partitions)
				cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
				said, failed := cmd.CombinedOutput()
				mu.Lock()
				if failed != nil {
					err = errors.Join(err, fmt.Errorf("sbatch: %w: %s", failed, said))
				}
				ids[strings.TrimSpace(string(said))] = true
				mu.Unlock()
			}
		})
	}
	for i := range *jobs {
		turns <- i
	}
	close(turns)
	group.Wait()
	return ids, err
}

// countCompleted counts those of some jobs that Slurm wrote down as completed. Another end fails.
func (c *cluster) countCompleted(ids map[string]bool) (n int, err error) {
	text, err := os.ReadFile(c.completed)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("reading what ended: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "JobId="), " ")
		switch {
		case !ids[id]:
		case !strings.Contains(line, "JobState=COMPLETED"):
			return 0, fmt.Errorf("a job of Slurm has not succeeded: %s", line)
		default:
			n++
		}
	}
	return n, nil
}
