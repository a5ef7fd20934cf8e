package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Commands runs Slurm's commands for those who only look at a cluster, as the
// provisioner of the same config runs them.
type Commands struct {
	runner runner
	system runner // for commands that are not Slurm's
}

// lookTimeout bounds a command where the config does not: accounting may take
// longer than what the provisioner asks for.
const lookTimeout = 5 * time.Minute

// NewCommands needs no more of the config than what says where the commands are.
func NewCommands(config Config) Commands {
	config.Timeout = cmp.Or(config.Timeout, lookTimeout)
	config = config.WithDefaults()
	c := Commands{runner: newRunner(config)}
	c.system = c.runner
	c.system.bin = ""
	return c
}

// Run runs one of Slurm's commands and returns what it printed. What it refuses
// is the error's text, as Slurm says it.
func (c Commands) Run(ctx context.Context, name string, args ...string) (string, error) {
	return runPlain(ctx, c.runner, name, args...)
}

// User is the user as whom the commands run.
func (c Commands) User(ctx context.Context) (string, error) {
	name, err := runPlain(ctx, c.system, "id", "-un")
	return strings.TrimSpace(name), err
}

func runPlain(ctx context.Context, r runner, name string, args ...string) (string, error) {
	got, err := r.runCommand(ctx, "", name, args...)
	switch {
	case errors.Is(err, errNoCommand):
		return "", fmt.Errorf("the command %s is not here: %w", name, err)
	case err != nil:
		return "", fmt.Errorf("asking Slurm: %w", err)
	case got.code != 0:
		said := strings.Join(strings.Fields(got.stderr+" "+got.stdout), " ") // scontrol complains on standard output
		return "", fmt.Errorf("%s failed: %s", name, truncateText(said))
	}
	return got.stdout, nil
}
