package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/forewarm/forewarm/client"
)

// daemon is the program of the daemon, as it runs on a node.
type daemon struct {
	run *exec.Cmd
	dir string
}

// startDaemon joins the program as the daemon of a node.
func startDaemon(ctx context.Context, api *client.Client, url, nodeID string) (*daemon, error) {
	token, err := api.IssueJoinToken(ctx, nodeID, 0)
	if err != nil {
		return nil, fmt.Errorf("issuing a token: %w", err)
	}
	dir, err := os.MkdirTemp(*folder, "forewarm-jobs.")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a daemon: %w", err)
	}
	d := &daemon{dir: dir, run: exec.CommandContext(ctx, *binary, "run", "--url", url, "--node", nodeID, "--token-file",
		"-", "--simulate", "8", "--shared-user", "--state-dir", filepath.Join(dir, "state"), "--hold-dir",
		filepath.Join(dir, "holds"), "--log-format", "json")} //nolint:gosec // the program that is measured
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { _ = log.Close() }()
	d.run.Stdin, d.run.Stdout, d.run.Stderr = strings.NewReader(token.Token), log, log
	err = os.Chmod(dir, 0o711) //nolint:gosec // users of holds pass through it
	if err == nil {
		err = d.run.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s (make bin/forewarm-node): %w", *binary, err), os.RemoveAll(dir))
	}
	return d, nil
}

func (d *daemon) stop() error {
	return errors.Join(d.run.Process.Signal(os.Interrupt), d.run.Wait(), os.RemoveAll(d.dir))
}
