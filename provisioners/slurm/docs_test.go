package slurm_test

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every example of the manual is one that works.
func TestExamplesOfTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/slurm.md")
	require.NoError(t, err)
	blocks := fenced.FindAllSubmatch(page, -1)
	require.Len(t, blocks, 4)
	for _, block := range blocks {
		var file struct {
			Provisioners []struct {
				Kind   string       `yaml:"kind"`
				Config slurm.Config `yaml:"config"`
			} `yaml:"provisioners"`
			Pools []map[string]any `yaml:"pools"`
		}
		decoder := yaml.NewDecoder(bytes.NewReader(block[1]))
		decoder.KnownFields(true)
		require.NoError(t, decoder.Decode(&file), "%s", block[1])
		require.Len(t, file.Provisioners, 1)
		require.Equal(t, "slurm", file.Provisioners[0].Kind)
		c := file.Provisioners[0].Config
		c.StateFile = ""
		made := openConfigured(t, c)
		for _, pool := range file.Pools {
			require.Equal(t, pool["provisioner"], made.Name())
			require.Equal(t, pool["region"], c.Region)
			require.Equal(t, pool["instance_type"], c.Offers[0].Type)
			require.Equal(t, pool["model"], c.Offers[0].Model)
			require.Equal(t, pool["gpus_per_node"], c.Offers[0].GPUs)
		}
	}
}

// openConfigured opens what the config's use says, as the program does.
func openConfigured(t *testing.T, c slurm.Config) provisioners.Provisioner {
	t.Helper()
	if c.Use == slurm.UseObserved {
		made, err := slurm.NewObserved(c, clock.NewManual(start))
		require.NoError(t, err)
		return made
	}
	made, err := slurm.New(c, clock.NewManual(start))
	require.NoError(t, err)
	return made
}
