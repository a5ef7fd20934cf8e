// Package cli is the client half of the forewarm command: it calls the API of a
// running server and shows the answer. Each noun has a package of its own below
// this one, and each command a file.
//
// Its promises to scripts: data goes to standard output and everything else to
// standard error; questions are asked only at a terminal; every failure has an
// exit code of its own kind and names a command to run next; -o json is the
// API's own JSON.
package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/allocations"
	"github.com/forewarm/forewarm/cli/api"
	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/audit"
	"github.com/forewarm/forewarm/cli/calendar"
	"github.com/forewarm/forewarm/cli/contexts"
	"github.com/forewarm/forewarm/cli/decisions"
	"github.com/forewarm/forewarm/cli/events"
	"github.com/forewarm/forewarm/cli/explain"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/forecasts"
	"github.com/forewarm/forewarm/cli/gpus"
	"github.com/forewarm/forewarm/cli/history"
	"github.com/forewarm/forewarm/cli/jobs"
	"github.com/forewarm/forewarm/cli/keys"
	"github.com/forewarm/forewarm/cli/nodes"
	"github.com/forewarm/forewarm/cli/organizations"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/cli/pools"
	"github.com/forewarm/forewarm/cli/prewarm"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/cli/quota"
	"github.com/forewarm/forewarm/cli/recovery"
	"github.com/forewarm/forewarm/cli/replay"
	"github.com/forewarm/forewarm/cli/reports"
	"github.com/forewarm/forewarm/cli/reservations"
	"github.com/forewarm/forewarm/cli/schedules"
	"github.com/forewarm/forewarm/cli/sessions"
	"github.com/forewarm/forewarm/cli/shares"
	"github.com/forewarm/forewarm/cli/slurm"
	"github.com/forewarm/forewarm/cli/status"
	"github.com/forewarm/forewarm/cli/top"
	"github.com/forewarm/forewarm/cli/users"
	"github.com/forewarm/forewarm/cli/wait"
	"github.com/forewarm/forewarm/internal/clock"
)

// Root returns the command tree, to which the caller may add its own commands.
// openSlurm is how a Slurm cluster is reached.
func Root(version string, openSlurm func(app.SlurmAccess) (app.SlurmCluster, error)) *cobra.Command {
	return newRoot(app.World{Version: version, Getenv: os.Getenv, IsSet: isSet, Clock: clock.System{}, Pause: sleepContext,
		Terminal: isTerminal, Become: becomeProgram, OpenSlurm: openSlurm})
}

func newRoot(w app.World) *cobra.Command {
	a := &app.App{World: w}
	root := &cobra.Command{
		Use:   "forewarm",
		Short: "GPUs that are warm before you ask",
		Long: "Forewarm keeps GPU capacity ready just ahead of need, and shows what that costs.\n\n" +
			"Start:  forewarm up",
		Args: flags.NoArgs, RunE: app.ShowHelp, SilenceErrors: true, SilenceUsage: true, Version: w.Version,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return checkLine(a, cmd, args) },
	}
	root.SetFlagErrorFunc(problem.FlagError)
	root.SetVersionTemplate("forewarm {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = false
	bindGlobalFlags(a, root)
	root.AddGroup(&cobra.Group{ID: "get", Title: "Get GPUs:"}, &cobra.Group{ID: "queue", Title: "Run jobs:"},
		&cobra.Group{ID: "plan", Title: "Plan ahead:"},
		&cobra.Group{ID: "fleet", Title: "See the fleet:"}, &cobra.Group{ID: "admin", Title: "Administer:"})
	for group, commands := range map[string][]*cobra.Command{
		"get": {allocations.NewAllocateCommand(a), allocations.NewReleaseCommand(a), allocations.NewExtendCommand(a),
			sessions.NewExecCommand(a), sessions.NewPortCommand(a), sessions.NewCopyCommand(a),
			allocations.NewSSHCommand(a), allocations.NewEnvCommand(a), allocations.NewCommand(a), wait.NewCommand(a),
			explain.NewCommand(a, reservations.NewSingleReserveCommand(a), allocations.NewAllocateCommand(a))},
		"queue": {jobs.NewRunCommand(a), jobs.NewSbatchCommand(a), jobs.NewCommand(a), jobs.NewQueueCommand(a)},
		"plan": {reservations.NewReserveCommand(a), reservations.NewCommand(a), schedules.NewCommand(a),
			calendar.NewCommand(a), prewarm.NewCommand(a), plans.NewCommand(a,
				reservations.NewSingleReserveCommand(a), allocations.NewAllocateCommand(a),
				reservations.NewClaimCommand(a), allocations.NewReleaseCommand(a),
				reservations.NewCancelCommand(a), quota.NewSetCommand(a),
				pools.NewEditCommand(a)), plans.NewApplyCommand(a)},
		"fleet": {status.NewCommand(a), pools.NewCommand(a), shares.NewCommand(a), nodes.NewCommand(a),
			gpus.NewCommand(a), top.NewCommand(a), events.NewCommand(a), decisions.NewCommand(a), replay.NewCommand(a),
			forecasts.NewCommand(a),
			reports.NewReportCommand(a), reports.NewCostsCommand(a), history.NewCommand(a), slurm.NewCommand(a),
			recovery.NewCommand(a), audit.NewCommand(a)},
		"admin": {contexts.NewLoginCommand(a), keys.NewWhoamiCommand(a), contexts.NewCommand(a), keys.NewCommand(a),
			organizations.NewCommand(a), quota.NewCommand(a), users.NewCommand(a), api.NewCommand(a),
			newManualCommand(a),
			newVersionCommand(a)},
	} {
		for _, c := range commands {
			c.GroupID, c.Aliases = group, aliases[c.Name()]
		}
		root.AddCommand(commands...)
	}
	installHelp(a, root)
	prepareCommand(a, root)
	return root
}

// colours annotates the root when a terminal shows them.
const colours = "colours"

func isSet(name string) bool {
	_, is := os.LookupEnv(name)
	return is
}
