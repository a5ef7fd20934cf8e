// Command forewarm-agent runs next to the customer's workloads: it reads job
// history and logs, predicts which GPUs will be wanted, and asks the control
// plane to have them warm. Until its mode is auto, it only watches and keeps
// score.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	_ "time/tzdata" // histories name zones that the system may not have

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// version is set by release builds with -ldflags "-X main.version=…".
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := executeCommand(ctx, newRoot(outside{clock: clock.System{}, getenv: os.Getenv}))
	stop()
	os.Exit(code)
}

// outside is what the commands take from the machine besides files.
type outside struct {
	clock  clock.Clock
	getenv func(string) string
}

func newRoot(o outside) *cobra.Command {
	root := &cobra.Command{
		Use: "forewarm-agent", Short: "Predicts which GPUs you will need and keeps them warm",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, SilenceUsage: true, Version: versionText(),
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{flagError(err)} })
	root.AddCommand(runCommand(o), initCommand(o), backtestCommand(o), egressCommand(o), versionCommand())
	return root
}

// refuseArguments is for commands that are told everything by flags. cobra's own words
// would be of a command that there is not.
func refuseArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{fmt.Errorf("%q is one argument too many", args[0])}
}

// usageError is a command line that makes no sense.
type usageError struct{ error }

// The exit codes, the same as those of forewarm.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitLogin    = 4
	exitNotFound = 5
	exitPolicy   = 7
	exitStopped  = 130
)

// errInterrupted says that a command that ends by itself was told to stop first.
var errInterrupted = errors.New("interrupted: nothing was written")

// executeCommand runs the command line and returns its exit code. Being told to stop is
// how a run ends, and no failure; what was to give an answer has given none.
func executeCommand(ctx context.Context, root *cobra.Command) int {
	cmd, err := root.ExecuteContextC(ctx)
	if errors.Is(err, errInterrupted) {
		_, _ = fmt.Fprintln(root.ErrOrStderr(), err)
		return exitStopped
	}
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitOK
	}
	code, next := classifyError(cmd, err)
	_, _ = fmt.Fprintf(root.ErrOrStderr(), "Error: %v\nNext:  %s\n", err, next)
	return code
}

// classifyError finds the exit code of a failure, and what to run next.
func classifyError(cmd *cobra.Command, err error) (code int, next string) {
	var (
		wrong   *strictyaml.Error
		usage   *usageError
		problem *client.Error
		chain   *egress.ChainError
		nothing *nothingRead
	)
	switch {
	case errors.As(err, &nothing):
		return exitFailed, "make the file, or correct sources in the configuration; then forewarm-agent run --dry-run"
	case errors.As(err, &wrong):
		return exitUsage, cmd.CommandPath() + " --help"
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"),
		strings.HasPrefix(err.Error(), "accepts "):
		return exitUsage, cmd.CommandPath() + " --help"
	case errors.As(err, &chain):
		return exitFailed, "forewarm-agent egress verify"
	case errors.Is(err, egress.ErrInUse):
		return exitFailed, "forewarm-agent run --dry-run"
	case errors.As(err, &problem):
		return codeOf(problem.Problem.Status), "forewarm-agent run --dry-run"
	default:
		return exitFailed, cmd.CommandPath() + " --help"
	}
}

func codeOf(status int) int {
	switch status {
	case 401:
		return exitLogin
	case 403:
		return exitPolicy
	case 404:
		return exitNotFound
	case 400, 422:
		return exitUsage
	default:
		return exitFailed
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: refuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "forewarm-agent "+versionText())
			return err
		},
	}
}

// versionText is the release's version, or the revision that was built.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "dev-" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "dev"
}
