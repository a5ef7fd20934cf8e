package daemon

import (
	"cmp"
	"fmt"
	"strings"

	cli "github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// OpenSlurm reaches a Slurm cluster as the provisioner of the configuration does,
// or as access says.
func OpenSlurm(access cli.SlurmAccess) (cli.SlurmCluster, error) {
	config, err := slurmConfig(access)
	if err != nil {
		return cli.SlurmCluster{}, err
	}
	if len(access.Prefix) > 0 {
		config.CommandPrefix = access.Prefix
	}
	config.BinDir = cmp.Or(access.BinDir, config.BinDir)
	config.SlurmConf = cmp.Or(access.SlurmConf, config.SlurmConf)
	commands := slurm.NewCommands(config)
	cluster := cli.SlurmCluster{Run: commands.Run, User: commands.User}
	for _, o := range config.Offers {
		cluster.Offers = append(cluster.Offers,
			cli.SlurmOffer{Partition: o.Partition, GPUs: o.GPUs, Price: money.MicroUSD(o.Price)})
	}
	return cluster, nil
}

// slurmConfig is the config of the provisioner that was asked for, empty without a
// configuration.
func slurmConfig(access cli.SlurmAccess) (slurm.Config, error) {
	if access.Config == "" {
		return slurm.Config{}, nil
	}
	cfg, err := loadConfig(access.Config)
	if err != nil {
		return slurm.Config{}, err
	}
	var found []slurm.Config
	var names []string
	for _, p := range cfg.Provisioners {
		if p.Kind != "slurm" {
			continue
		}
		var one slurm.Config
		if err := strictyaml.DecodeNode(access.Config, "provisioners.config", &p.Config, &one); err != nil {
			return slurm.Config{}, err
		}
		one = one.WithDefaults()
		names = append(names, one.Name)
		if access.Provisioner == "" || access.Provisioner == one.Name {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		return slurm.Config{}, &strictyaml.Error{Path: access.Config,
			Message: fmt.Sprintf("has %d provisioners of kind slurm to choose from", len(names)),
			Fix:     "name one with --provisioner: " + cmp.Or(strings.Join(names, ", "), "there is none")}
	}
	return found[0], nil
}
