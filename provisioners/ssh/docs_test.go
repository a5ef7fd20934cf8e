package ssh_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/ssh"
)

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every example of the manual is one that works, but for the files that it names.
func TestExamplesOfTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/ssh.md")
	require.NoError(t, err)
	blocks := fenced.FindAllSubmatch(page, -1)
	require.Len(t, blocks, 3)
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

// The commands of the manual that start the node's daemon leave it what it needs, for its user alone. Where they
// write is a folder of the test's, and there is no systemd in it.
func TestTheManualStartsTheDaemon(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/ssh.md")
	require.NoError(t, err)
	blocks := fenced.FindAllSubmatch(page, -1)
	var file struct {
		Provisioners []struct {
			Kind   string     `yaml:"kind"`
			Config ssh.Config `yaml:"config"`
		} `yaml:"provisioners"`
	}
	require.NoError(t, yaml.Unmarshal(blocks[len(blocks)-1][1], &file))
	setup := file.Provisioners[0].Config.Setup
	require.True(t, setup.Daemon)
	l := newLab(t, 1)
	etc, state := t.TempDir(), t.TempDir()
	for i, command := range setup.Commands {
		setup.Commands[i] = strings.NewReplacer("/etc/forewarm", etc, "/var/lib/forewarm-node", state, "systemctl",
			"echo >>"+etc+"/systemctl").Replace(command)
	}
	l.config.Setup = setup
	f := l.openFleet()
	spec := testSpec("nod_1")
	spec.Daemon = provisioners.Daemon{URL: "https://forewarm.example", Token: "secret"}
	made, err := f.Create(t.Context(), "token-1", spec)
	require.NoError(t, err)
	l.awaitDetached()
	require.Equal(t, provisioners.Running, l.getInstance(f, made.ID).Phase)
	for name, want := range map[string]string{"join-token": "secret",
		"systemctl":          "stop forewarm-node\nstart forewarm-node\n",
		"forewarm-node.yaml": "url: https://forewarm.example\nnode: nod_1\ntoken_file: " + etc + "/join-token\n"} {
		text, err := os.ReadFile(filepath.Join(etc, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	info, err := os.Stat(filepath.Join(etc, "join-token"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "the daemon refuses a token that others may read")
	require.NoDirExists(t, state)
}
