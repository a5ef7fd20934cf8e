package ssh_test

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/provisioners/ssh"
)

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every example of the manual is one that works, but for the files that it names.
func TestExamplesOfTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/ssh.md")
	require.NoError(t, err)
	blocks := fenced.FindAllSubmatch(page, -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		var file struct {
			Provisioners []struct {
				Kind   string     `yaml:"kind"`
				Config ssh.Config `yaml:"config"`
			} `yaml:"provisioners"`
			Pools []map[string]any `yaml:"pools"`
		}
		decoder := yaml.NewDecoder(bytes.NewReader(block[1]))
		decoder.KnownFields(true)
		require.NoError(t, decoder.Decode(&file), "%s", block[1])
		require.Len(t, file.Provisioners, 1)
		require.Equal(t, "ssh", file.Provisioners[0].Kind)
		config := file.Provisioners[0].Config.WithDefaults()
		require.NoError(t, config.Validate())
		for _, pool := range file.Pools {
			require.Equal(t, pool["provisioner"], config.Name)
			require.Equal(t, pool["instance_type"], config.Hosts[0].Type)
			require.Equal(t, pool["region"], config.Hosts[0].Region)
			require.Equal(t, pool["gpus_per_node"], config.Hosts[0].GPUs)
		}
	}
}
