// Package slurm looks at a Slurm cluster without changing anything: what keeping
// its nodes warm would take, and what the waits for cold ones have cost so far.
// Nothing that it reads leaves the machine.
package slurm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/core/money"
)

// NewCommand is the command slurm.
func NewCommand(a *app.App) *cobra.Command {
	return app.NewGroupCommand("slurm", "Look at a Slurm cluster: how its nodes can be kept warm, and what cold ones cost",
		newCheckCommand(a), newReportCommand(a))
}

// reach are the flags that say where Slurm's commands are, and what a node costs.
type reach struct {
	access app.SlurmAccess
	via    string
	price  string
}

func (r *reach) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.via, "via", "", "words before every command, such as 'ssh login1'")
	f.StringVar(&r.access.Config, "config", "",
		"forewarm.yaml: take where the commands are, and prices, from its provisioner of kind slurm")
	f.StringVar(&r.access.Provisioner, "provisioner", "", "which of them, where there are several")
	f.StringVar(&r.access.BinDir, "bin-dir", "", "folder of Slurm's commands (default PATH)")
	f.StringVar(&r.access.SlurmConf, "slurm-conf", "", "SLURM_CONF for them (default Slurm's own)")
	f.StringVar(&r.price, "price", "", "what a node costs in USD an hour (default the configuration's offers)")
}

// open reaches the cluster.
func (r *reach) open(a *app.App, cmd *cobra.Command) (app.SlurmCluster, error) {
	r.access.Prefix = strings.Fields(r.via)
	cluster, err := a.OpenSlurm(r.access)
	if err != nil {
		return cluster, &exit.Error{Code: exit.Usage, Message: err.Error(), Next: []string{cmd.CommandPath() + " --help"},
			Err: err}
	}
	return cluster, nil
}

// parsePrice reads --price; 0 is not given.
func (r *reach) parsePrice(cmd *cobra.Command) (money.MicroUSD, error) {
	if r.price == "" {
		return 0, nil
	}
	price, err := readDollars(r.price)
	if err != nil {
		return 0, exit.UsageErrorf(cmd.CommandPath()+" --price 32.77", "--price %q is not an amount: %v", r.price, err)
	}
	return price, nil
}

const mostDollars = 1_000_000

// readDollars reads an amount above nothing, such as 32.77, exactly.
func readDollars(text string) (money.MicroUSD, error) {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "$"), ".")
	var micros money.MicroUSD
	digits := whole + (fraction + "000000")[:6]
	if len(fraction) > 6 || whole == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > 13 {
		return 0, errors.New("want dollars an hour, such as 32.77")
	}
	for _, d := range digits {
		micros = micros*10 + money.MicroUSD(d-'0')
	}
	if micros == 0 || micros > mostDollars*money.USD {
		return 0, fmt.Errorf("want more than 0 and at most %d dollars an hour", mostDollars)
	}
	return micros, nil
}

// askError says that a command of Slurm's failed, and what to do.
func askError(cmd *cobra.Command, err error) error {
	next := []string{"forewarm slurm check", cmd.CommandPath() + " --via 'ssh LOGIN-NODE'"}
	if cmd.Name() == "check" {
		next = next[1:]
	}
	return &exit.Error{Code: exit.Failed, Message: err.Error(), Next: next, Err: err}
}
