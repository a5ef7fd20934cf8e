// Command forewarm-node runs on a GPU node: it looks at the GPUs, judges their health, and
// reports both to the control plane. It opens no port.
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
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/jobs"
	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/report"
	"github.com/forewarm/forewarm/node/supervise"
)

// version is set by release builds with -ldflags "-X main.version=…".
var version = ""

const (
	// launchArgument has this program become a holder's command.
	launchArgument = "launch"
	// jobArgument has it run attempts of jobs.
	jobArgument = "job"
	// superviseArgument has it supervise the command of a session.
	superviseArgument = "supervise"
)

// launcher starts this program again, also where another one has taken its place meanwhile.
var launcher = launch.Launcher{"/proc/self/exe", launchArgument}

func main() {
	if len(os.Args) == 2 && os.Args[1] == launchArgument { // before any signal is heeded
		os.Exit(launch.Serve())
	}
	if len(os.Args) == 2 && os.Args[1] == jobArgument {
		os.Exit(jobs.Run(launcher))
	}
	if len(os.Args) == 2 && os.Args[1] == superviseArgument {
		os.Exit(supervise.Run(launcher))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := executeCommand(ctx, newRoot(outside{clock: clock.System{}, uptime: machineUptime, getenv: os.Getenv}))
	stop()
	os.Exit(code)
}

// outside is what the commands take from the machine besides files.
type outside struct {
	clock  clock.Clock
	uptime func() time.Duration // how long it has been up
	getenv func(string) string
}

func newRoot(o outside) *cobra.Command {
	root := &cobra.Command{
		Use: "forewarm-node", Short: "Reports the GPUs of this machine to Forewarm",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, SilenceUsage: true, Version: versionText(),
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newRunCommand(o), newLookCommand(o), newChildCommand(), newGPUChildCommand(o.clock),
		newVersionCommand(), newSelfTestCommand(o), newUpgradeCommand(o))
	return root
}

// usageError is a command line or configuration that makes no sense.
type usageError struct{ error }

// fixableError is a failure with what helps.
type fixableError struct {
	error
	fix string
}

// Unwrap returns the failure.
func (e *fixableError) Unwrap() error { return e.error }

// The exit codes, the same as those of forewarm. After exitRefused starting again is of no
// use: the unit file says so to systemd.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 4
)

// executeCommand runs the command line and returns its exit code. Being told to stop is how
// a run ends, and no failure; what else does not come to its end has failed.
func executeCommand(ctx context.Context, root *cobra.Command) int {
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil || cmd.Name() == runName && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitOK
	}
	code, next := classifyError(cmd, err)
	_, _ = fmt.Fprintf(root.ErrOrStderr(), "Error: %v\nNext:  %s\n", err, next)
	return code
}

// classifyError finds the exit code of a failure, and what to do next.
func classifyError(cmd *cobra.Command, err error) (code int, next string) {
	var (
		wrong   *strictyaml.Error
		usage   *usageError
		refused *report.RefusedError
		fixable *fixableError
	)
	switch {
	case errors.As(err, &fixable):
		return exitFailed, fixable.fix
	case errors.As(err, &refused) && refused.Superseded():
		return exitRefused, "stop one of the two daemons of this machine: systemctl status forewarm-node"
	case errors.As(err, &refused):
		return exitRefused, "have an operator run: forewarm nodes join NODE; then start with the token that it prints"
	case errors.As(err, &wrong), errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage, cmd.CommandPath() + " --help"
	case errors.Is(err, gpu.ErrNoDriver):
		return exitFailed, "install the NVIDIA driver, or try: forewarm-node look --simulate 8"
	default:
		return exitFailed, cmd.CommandPath() + " --help"
	}
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program, and whether it was built with NVML", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			how := "without NVML: it asks nvidia-smi"
			if gpu.HasNVML {
				how = "with NVML"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "forewarm-node %s, %s\n", versionText(), how)
			return err
		},
	}
}

// newChildCommand is the process in which NVIDIA's library runs.
func newChildCommand() *cobra.Command {
	var library string
	c := &cobra.Command{
		Use: nvmlArgument, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return gpu.Serve(cmd.InOrStdin(), cmd.OutOrStdout(), library)
		},
	}
	c.Flags().StringVar(&library, "library", "", "the library to load instead of the driver's own")
	return c
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
