package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
	wire "github.com/forewarm/forewarm/contract/session"
)

// process is the program of the daemon, as it runs on a node.
type process struct {
	run *exec.Cmd
	dir string
}

// startDaemon joins the program as the daemon of a node.
func startDaemon(ctx context.Context, operator *client.Client, url, nodeID string) (p process, err error) {
	token, err := operator.IssueJoinToken(ctx, nodeID, 0)
	if err != nil {
		return p, err
	}
	if p.dir, err = os.MkdirTemp("/var/tmp", "forewarm-node"); err != nil {
		return p, err
	}
	if err := os.Chmod(p.dir, 0o711); err != nil { //nolint:gosec // users of holds pass through it
		return p, err
	}
	p.run = exec.CommandContext(ctx, *binary, "run", "--url", url, "--node", nodeID, "--token-file", "-",
		"--simulate", "8", "--shared-user", "--state-dir", p.dir+"/state") //nolint:gosec // the program that is measured
	p.run.Stdin = strings.NewReader(token.Token)
	if err := p.run.Start(); err != nil {
		return p, fmt.Errorf("starting %s (make bin/forewarm-node): %w", *binary, err)
	}
	return p, nil
}

func (p process) stop() error {
	return errors.Join(p.run.Process.Signal(os.Interrupt), p.run.Wait(), os.RemoveAll(p.dir))
}

// measureDaemon runs the program itself for a minute, at rest.
func measureDaemon(ctx context.Context, out io.Writer, url string, d *daemon) error {
	p, err := startDaemon(ctx, d.operator, url, d.id)
	if err != nil {
		return err
	}
	wait := sleep(ctx, 5*time.Second)
	used := rig.ProcessTime(p.run.Process.Pid)
	const atRest = time.Minute
	wait = errors.Join(wait, sleep(ctx, atRest))
	rig.Series{float64(rig.Resident(p.run.Process.Pid)) / (1 << 20)}.Print(out, "node_rss_mb", "MiB")
	rig.Series{100 * (rig.ProcessTime(p.run.Process.Pid) - used).Seconds() / atRest.Seconds()}.Print(out,
		"node_cpu_percent", "%")
	return errors.Join(wait, p.stop())
}

const (
	sessionCount  = 200
	attachWithin  = 30 * time.Second
	attachedEvery = 50 * time.Millisecond
)

// measureSessions runs commands on a node, one after another, and measures how long it takes
// until what they say arrives.
func measureSessions(ctx context.Context, out io.Writer, url string, operator *client.Client) (err error) {
	made, err := operator.Allocate(ctx, contract.AllocationCreate{Pool: rig.PoolName, GPUs: 1, LeaseSeconds: 600},
		client.Options{})
	if err != nil {
		return err
	}
	held, err := operator.Allocation(ctx, made.ID)
	if err != nil {
		return err
	}
	if held.Access == nil {
		return fmt.Errorf("allocation %s is %s: no node to measure on", held.ID, held.State)
	}
	p, err := startDaemon(ctx, operator, url, held.Access.Nodes[0].NodeID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	server := session.Server{API: operator, HTTP: &http.Client{}}
	for until := time.Now().Add(attachWithin); ; {
		if _, err = echo(ctx, server, held.ID); err == nil {
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("the daemon does not attach: %w", err)
		}
		if err := sleep(ctx, attachedEvery); err != nil {
			return err
		}
	}
	var took []float64
	for range sessionCount {
		ms, err := echo(ctx, server, held.ID)
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	slices.Sort(took)
	rig.Series{took[len(took)/2]}.Print(out, "exec_first_byte_ms", "ms")
	rig.Series{took[len(took)*99/100]}.Print(out, "exec_first_byte_p99_ms", "ms")
	return nil
}

// echo runs a command that says a word, and returns after how many milliseconds it came. It
// counts only if the command ended as it should.
func echo(ctx context.Context, server session.Server, allocationID string) (ms float64, err error) {
	from, said := time.Now(), firstByte{}
	end, err := server.Run(ctx, allocationID, session.Command{Stdout: &said,
		Command: wire.Command{Arguments: []string{"echo", "word"}}})
	if err == nil && (end.ExitCode != 0 || said.at.IsZero()) {
		err = fmt.Errorf("the command ended with %d and said nothing", end.ExitCode)
	}
	return said.at.Sub(from).Seconds() * 1000, err
}

// firstByte notes when something is written first.
type firstByte struct{ at time.Time }

// Write implements io.Writer.
func (f *firstByte) Write(p []byte) (int, error) {
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return len(p), nil
}
