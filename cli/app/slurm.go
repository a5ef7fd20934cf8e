package app

import (
	"context"

	"github.com/forewarm/forewarm/core/money"
)

// SlurmAccess says how Slurm's commands are reached: here, unless it says
// otherwise.
type SlurmAccess struct {
	Config      string   // forewarm.yaml, which says the rest; empty: none
	Provisioner string   // which of its provisioners of kind slurm; empty: the only one
	Prefix      []string // stands before every command, such as ssh and a host
	BinDir      string   // the folder of the commands; empty: PATH
	SlurmConf   string   // SLURM_CONF for them; empty: Slurm's default
}

// SlurmCluster is a cluster that is only looked at.
type SlurmCluster struct {
	// Run runs one of Slurm's commands and returns what it printed. Times that it
	// prints are Unix seconds.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// User is the user as whom they run.
	User func(context.Context) (string, error)
	// Offers are those of the configuration.
	Offers []SlurmOffer
}

// SlurmOffer is what a configuration says that GPUs of a partition cost.
type SlurmOffer struct {
	Partition string
	GPUs      int
	Price     money.MicroUSD // per hour, of so many GPUs; 0 is not known
}
