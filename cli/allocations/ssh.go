package allocations

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/access"
)

// NewSSHCommand is the command ssh.
func NewSSHCommand(a *app.App) *cobra.Command {
	var rank int
	var terminal bool
	c := &cobra.Command{
		Use: "ssh ALLOCATION [-- COMMAND…]", Short: "Open a shell, or run a command, on an allocation's GPUs",
		Args: flags.OneBeforeDash("ALLOCATION"),
		Long: `Open a shell, or run a command, on a node of an allocation, with the environment of forewarm env.

It runs the node's own way in, which must be installed here: ssh, srun for a node of Slurm, kubectl for a pod. Standard
input and output, signals and the exit code are those of that program, and what it takes to be let in, such as a key
or a login, is between you and the node.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := findSeat(a, cmd, args[0], rank)
			if err != nil {
				return err
			}
			way, err := wayInto(a, at)
			if err != nil {
				return err
			}
			asks := terminal || len(args) == 1 && a.Terminal(cmd.InOrStdin())
			return become(a, cmd, way.Run(pairs(at.node.Environment), args[1:], asks))
		},
	}
	c.Flags().IntVar(&rank, "node", 0, "the rank of the node")
	c.Flags().BoolVarP(&terminal, "tty", "t", false, "give a command a terminal, as a shell has one")
	return c
}

// wayInto is the way into a node, or why there is none.
func wayInto(a *app.App, at seat) (access.Address, error) {
	way, err := access.Parse(at.node.Way)
	if err == nil && way.Enterable() {
		return way, checkHere(a, way, at.of)
	}
	e := &exit.Error{Code: exit.Conflict, Next: []string{"forewarm env " + at.of.ID}}
	switch {
	case at.of.Access.Policy == contract.AccessDevices:
		e.Code = exit.Policy
		e.Message = "the pool of " + at.of.ID + " names the devices only: it tells nobody a way in"
	case at.node.Kind == contract.WaySimulated:
		e.Message = "node " + at.node.NodeID + " is simulated: there is no machine to enter"
	default:
		e.Message = "no way into node " + at.node.NodeID + " is known: its provisioner names none"
	}
	return access.Address{}, e
}

// checkHere refuses to take this machine for the server's.
func checkHere(a *app.App, way access.Address, of contract.Allocation) error {
	target, err := a.Target()
	if err != nil || way.Kind != access.Local {
		return err
	}
	if u, err := url.Parse(target.Server); err == nil {
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return nil
		}
	}
	return &exit.Error{Code: exit.Conflict, Next: []string{"forewarm env " + of.ID},
		Message: "the GPUs of " + of.ID + " are in the machine of the server, " + target.Server + ", and this may be " +
			"another one: run the command there"}
}

// pairs are variables as K=V, by name.
func pairs(env map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// become makes a command of this process.
func become(a *app.App, cmd *cobra.Command, argv []string) error {
	if a.Flags.DryRun {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), access.Quote(argv))
		return err
	}
	if err := a.Become(argv); err != nil {
		return &exit.Error{Code: exit.Failed, Message: fmt.Sprintf("starting %s: %v", argv[0], err), Err: err,
			Next: []string{cmd.CommandPath() + " --help"}}
	}
	return nil
}
