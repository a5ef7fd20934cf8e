package main_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ending is how long a polite end may take: what the program gives up waiting for, it says with its exit code.
const ending = time.Minute

func TestGracefulStopAndSecondStart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	p, d, api := h.startUp(t, "--config", h.configFile())
	before, err := api.Whoami(t.Context())
	require.NoError(t, err)
	require.Zero(t, p.stop(t, ending), p.errors.String())

	again := h.start(t, nil, "up", "--config", h.configFile())
	d.open(t, again.awaitAddress(t))
	after, err := api.Whoami(t.Context())
	require.NoError(t, err, "the first key is still good")
	assert.Equal(t, before.KeyID, after.KeyID)
	require.Zero(t, again.stop(t, ending), again.errors.String())
	assert.NotContains(t, again.output(), "saved and selected", "only the first start makes a key")
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	h := newHome(t)
	h.writeCloud(t)
	p := h.start(t, nil, "up", "--config", h.configFile(), "--listen", taken.Addr().String())
	assert.Equal(t, 1, p.wait(t, patience))
	assert.Contains(t, p.errors.String(), taken.Addr().String()+" is in use")
	assert.Contains(t, p.errors.String(), "--listen", "the fix")
}

// A second process on the same data directory would overwrite the machines that
// the first has made, so it ends before it has opened anything.
func TestOneProcessPerDataDirectory(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	first := h.start(t, nil, "up", "--config", h.configFile())
	first.awaitAddress(t)
	for _, command := range []string{"up", "worker"} {
		second := h.start(t, nil, command, "--config", h.configFile())
		assert.Equal(t, 1, second.wait(t, patience), command)
		assert.Contains(t, second.errors.String(), "another forewarm works with", command)
	}
	first.kill()
	again := h.start(t, nil, "up", "--config", h.configFile())
	again.awaitAddress(t)
	require.Zero(t, again.stop(t, ending), "the lock dies with its process: "+again.errors.String())
}

// Every mistake in the file names its line and the fix, ends with exit code 2,
// and nothing is served.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, was, is, says, at string }{
		{"top", "deployment: e2e", "deploiment: e2e", "there is no key deploiment", "deploiment: e2e"},
		{"log", "log: {level: warn}", "log: {levle: warn}", "there is no key log.levle", "log: {levle: warn}"},
		{"level", "log: {level: warn}", "log: {level: loud}", "log: ", "log: {level: loud}"},
		{"organization", "max_gpus: 64", "max_gpu: 64", "there is no key organization.max_gpu", "max_gpu: 64"},
		{"count", "max_gpus: 64", "max_gpus: -1", "organization: ", "max_gpus: -1"},
		{"timing", "guard: 1s", "gard: 1s", "there is no key timing.gard", "gard: 1s"},
		{"duration", "guard: 1s", "guard: soon", "not a duration", "guard: soon"},
		{"provisioner", "kind: sim", "kid: sim", "there is no key provisioners[0].kid", "kid: sim"},
		{"kind", "kind: sim", "kind: azur", "unknown kind of provisioner", "kind: azur"},
		{"adapter", "terminating: 500ms", "terminate: 500ms", "there is no key provisioners[0].config.terminate",
			"terminate: 500ms"},
		{"adapter's type", "terminating: 500ms", "terminating: later",
			"provisioners[0].config.terminating is not a duration", "terminating: later"},
		{"adapter's list", "p50: 1s", "p51: 1s", "boot.p51", "p51: 1s"},
		{"adapter's value", "p95: 1500ms", "p95: 1ms", "p50 <= p95", "- kind"},
		{"adapter's fault", "effect: truncate", "effect: melt", "melt", "- kind"},
		{"pool", "max_nodes: 5", "max_node: 5", "there is no key pools[0].max_node", "max_node: 5"},
		{"pool's provisioner", "provisioner: sim", "provisioner: sam", "there is no provisioner", "provisioner: sam"},
		{"pool's machine", "instance_type: sim-2", "instance_type: sim-9", "offers no", "instance_type: sim-9"},
		{"pool's GPUs", "gpus_per_node: 2", "gpus_per_node: 3", "gpus_per_node", "gpus_per_node: 3"},
		{"pool's nodes", "max_nodes: 5", "max_nodes: -5", "max_nodes", "max_nodes: -5"},
		{"price", "price_per_node_hour: 36", "price_per_node_hour: much", "price", "price_per_node_hour: much"},
		{"listen", "listen: 127.0.0.1:0", "listen: 0.0.0.0:0", "open_bind", "listen: 0.0.0.0:0"},
		{"address", "listen: 127.0.0.1:0", "listen: nowhere", "host:port", "listen: nowhere"},
		{"port", "listen: 127.0.0.1:0", "listen: 127.0.0.1:99999", "is no port", "listen: 127.0.0.1:99999"},
		{"form", "timing: {", "timing: [", "this is not YAML", "organization"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			good := fmt.Sprintf(cloudConfig, h.dataDir(), h.cloudFile())
			require.Contains(t, good, c.was)
			bad := strings.Replace(good, c.was, c.is, 1)
			h.writeConfig(t, bad)
			p := h.start(t, nil, "up", "--config", h.configFile())
			assert.Equal(t, 2, p.wait(t, patience), p.errors.String())
			line := 1 + strings.Count(bad[:strings.Index(bad, c.at)], "\n")
			said := p.errors.String()
			assert.Contains(t, said, c.says)
			assert.Contains(t, said, fmt.Sprintf("%s:%d: ", h.configFile(), line))
			assert.Contains(t, said, "fix: ")
			_, err := os.Stat(h.cloudFile())
			assert.ErrorIs(t, err, os.ErrNotExist, "no machine was asked for")
		})
	}
}

// The demo is an installation of its own, which no configuration changes.
func TestTheDemoHasNoConfiguration(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	p := h.start(t, nil, "up", "--demo", "--config", h.configFile())
	require.Equal(t, 2, p.wait(t, patience), p.errors.String())
	require.Contains(t, p.errors.String(), "--demo and --config cannot be given together")
}

func TestMissingConfiguration(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.start(t, nil, "up", "--config", h.configFile())
	assert.Equal(t, 2, p.wait(t, patience))
	assert.Contains(t, p.errors.String(), h.configFile()+": does not exist")
}
