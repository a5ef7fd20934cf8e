package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	cli "github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/core/money"
)

const twoClusters = `
provisioners:
  - kind: slurm
    config: {name: lab, command_prefix: [/bin/echo, lab], offers: [
      {type: a, partition: gpu, model: a100, gpus: 4, price_per_hour: 16}]}
  - kind: slurm
    config: {name: old, command_prefix: [/bin/echo, old], offers: [{type: b, partition: v, model: v100, gpus: 1}]}
`

func writeClusters(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forewarm.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// What the configuration says of a cluster is used, unless the command line says
// otherwise.
func TestSlurmIsReachedAsConfigured(t *testing.T) {
	t.Parallel()
	path := writeClusters(t, twoClusters)
	c, err := OpenSlurm(cli.SlurmAccess{Config: path, Provisioner: "lab"})
	require.NoError(t, err)
	require.Equal(t, []cli.SlurmOffer{{Partition: "gpu", GPUs: 4, Price: 16 * money.USD}}, c.Offers)
	said, err := c.Run(t.Context(), "scontrol", "show", "config")
	require.NoError(t, err)
	require.Equal(t, "lab env LC_ALL=C SLURM_TIME_FORMAT=%s scontrol show config\n", said)
	c, err = OpenSlurm(cli.SlurmAccess{Config: path, Provisioner: "old", Prefix: []string{"/bin/echo", "other"},
		BinDir: "/opt", SlurmConf: "/c"})
	require.NoError(t, err)
	said, err = c.Run(t.Context(), "sinfo")
	require.NoError(t, err)
	require.Equal(t, "other env LC_ALL=C SLURM_TIME_FORMAT=%s SLURM_CONF=/c /opt/sinfo\n", said)
}

func TestSlurmOfWhichProvisioner(t *testing.T) {
	t.Parallel()
	path := writeClusters(t, twoClusters)
	_, err := OpenSlurm(cli.SlurmAccess{Config: path})
	require.ErrorContains(t, err, "name one with --provisioner: lab, old")
	_, err = OpenSlurm(cli.SlurmAccess{Config: path, Provisioner: "new"})
	require.ErrorContains(t, err, "lab, old")
	_, err = OpenSlurm(cli.SlurmAccess{Config: writeClusters(t, "listen: 127.0.0.1:0\n")})
	require.ErrorContains(t, err, "there is none")
	_, err = OpenSlurm(cli.SlurmAccess{Config: writeClusters(t, "provisioners: [{kind: slurm, config: {nam: x}}]\n")})
	require.ErrorContains(t, err, "nam")
	_, err = OpenSlurm(cli.SlurmAccess{Config: "nowhere.yaml"})
	require.ErrorContains(t, err, "does not exist")
	_, err = OpenSlurm(cli.SlurmAccess{})
	require.NoError(t, err, "without a configuration it is the cluster of this machine")
}
