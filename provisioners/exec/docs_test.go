package exec_test

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/provisioners/exec"
)

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every example of the manual is one that works, also with what it comments out.
func TestExamplesOfTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/exec.md")
	require.NoError(t, err)
	blocks := fenced.FindAllSubmatch(page, -1)
	require.Len(t, blocks, 2)
	commented := regexp.MustCompile(`(?m)^(\s+)# (commands:|  \w+: +\[)`).ReplaceAll(blocks[1][1], []byte("$1$2"))
	require.NotEqual(t, blocks[1][1], commented)
	for _, block := range [][]byte{blocks[0][1], blocks[1][1], commented} {
		var file struct {
			Provisioners []struct {
				Kind   string      `yaml:"kind"`
				Config exec.Config `yaml:"config"`
			} `yaml:"provisioners"`
			Pools []map[string]any `yaml:"pools"`
		}
		decoder := yaml.NewDecoder(bytes.NewReader(block))
		decoder.KnownFields(true)
		require.NoError(t, decoder.Decode(&file), "%s", block)
		require.Len(t, file.Provisioners, 1)
		require.Equal(t, "exec", file.Provisioners[0].Kind)
		made := openScripts(t, file.Provisioners[0].Config)
		for _, pool := range file.Pools {
			offers, err := made.Offers(t.Context())
			require.NoError(t, err)
			require.Equal(t, pool["provisioner"], made.Name())
			require.Equal(t, pool["instance_type"], offers[0].Type)
			require.Equal(t, pool["region"], offers[0].Region)
			require.Equal(t, pool["gpus_per_node"], offers[0].GPUs)
		}
	}
}
