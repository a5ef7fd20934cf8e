package main_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
)

// requireKeyOpens reports whether a key opens a running program.
func requireKeyOpens(t *testing.T, p *process, key string) {
	t.Helper()
	opensAt(t, p.awaitAddress(t), key)
}

func opensAt(t *testing.T, address, key string) {
	t.Helper()
	_, api := openDoor(t, address, key)
	who, err := api.Whoami(t.Context())
	require.NoError(t, err)
	require.Equal(t, "operator", who.Role)
}

// A provisioner and a pool of its machines may be added in one step to an installation that knows others.
func TestAProvisionerComesWithItsPool(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const here = "provisioners:\n- {kind: local, config: {name: here, simulate: 2, daemon: none}}\n"
	const there = "- {kind: sim, config: {name: there, offers: [{type: two, model: a100, gpus: 2, memory_mib: 40960, " +
		"price_per_hour: 1.00, boot: {p50: 1s, p95: 1s}}]}}\n"
	const old = "pools:\n- {name: old, provisioner: here, region: local, instance_type: local, max_nodes: 1}\n"
	for i, config := range []string{here + old, here + there + old +
		"- {name: new, provisioner: there, instance_type: two, max_nodes: 1}\n"} {
		h.writeConfig(t, config)
		p, _, api := h.startUp(t, "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
		for _, pool := range []string{"old", "new"}[:i+1] {
			_, err := api.Pool(t.Context(), pool)
			require.NoError(t, err)
		}
		require.Zero(t, p.stop(t, ending), p.errors.String())
	}
}

// A first start that fails leaves nothing behind that keeps the next one from
// making a key.
func TestAFirstStartThatFailsMakesNoKey(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	const pool = "provisioners: [{kind: local, config: {name: here, simulate: 2}}]\npools:\n- {name: %, " +
		"provisioner: here, region: local, instance_type: local, max_nodes: 1}\n"
	for name, run := range map[string]struct {
		pool, listen, says string
	}{
		"port taken": {"good", taken.Addr().String(), "is in use"},
		"bad pool":   {"good, idle_release: 9000d", "127.0.0.1:0", "idle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.writeConfig(t, strings.ReplaceAll(pool, "%", run.pool))
			failed :=
				h.start(t, nil, "up", "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", run.listen)
			require.NotZero(t, failed.wait(t, patience))
			require.Contains(t, failed.errors.String(), run.says)
			h.writeConfig(t, strings.ReplaceAll(pool, "%", "good"))
			p := h.start(t, nil, "up", "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
			requireKeyOpens(t, p, h.awaitKey(t, p))
			require.Zero(t, p.stop(t, ending), p.errors.String())
		})
	}
}

// migrate says what became of each declared pool; up, too, of one that was deleted
// and comes back.
func TestAPoolThatComesBackIsTold(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeConfig(t, "provisioners: [{kind: local, config: {name: here, simulate: 2}}]\n"+
		"pools:\n- {name: lab, provisioner: here, region: local, instance_type: local, max_nodes: 1}\n")
	migrate := func() string {
		p := h.start(t, nil, "migrate", "--config", h.configFile(), "--data-dir", h.dataDir())
		require.Zero(t, p.wait(t, patience), p.errors.String())
		return p.errors.String()
	}
	up := func(work func(*client.Client)) string {
		p, _, api := h.startUp(t, "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
		work(api)
		require.Zero(t, p.stop(t, ending), p.errors.String())
		return p.errors.String()
	}
	remove := func(api *client.Client) { require.NoError(t, api.DeletePool(t.Context(), "lab")) }
	up(remove)
	require.Regexp(t, `pool "lab" was made again, because the configuration declares it: it was deleted \d{4}-`,
		migrate())
	require.Contains(t, migrate(), `pool "lab" exists and stays as it is`)
	require.NotContains(t, up(remove), "made again")
	require.Contains(t, up(remove), "a deleted pool is made again")
}

// Killed as soon as any of what a first start leaves is there, the next start has
// a key, hands it over, and it opens.
func TestAFirstStartThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, sign := range []string{"data/pepper", "data/forewarm.db", "data/first-key",
		"config/forewarm/contexts.yaml"} {
		h := newHome(t)
		first := h.start(t, nil, "up", "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
		eventually(t, patience, func() string {
			for _, there := range []string{sign,
				"config/forewarm/contexts.yaml"} { // the last thing: the sign may be gone again
				if _, err := os.Stat(filepath.Join(h.dir, there)); err == nil {
					return ""
				}
			}
			return "no " + sign
		})
		first.kill()
		p := h.start(t, nil, "up", "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
		p.awaitAddress(t)
		var key string
		eventually(t, patience, func() string {
			text, _ := os.ReadFile(filepath.Join(h.dir, "config", "forewarm", "contexts.yaml"))
			found := savedKey.FindSubmatch(text)
			if found == nil {
				return "no key is saved"
			}
			key = string(found[1])
			return ""
		})
		requireKeyOpens(t, p, key)
		require.Zero(t, p.stop(t, ending), p.errors.String())
	}
}

// An operator who lost the key gets another on the host, beside the running
// server, and where nothing was set up is told so.
func TestALostKeyIsRecovered(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	none := h.start(t, nil, "key", "recover", "--data-dir", h.dataDir())
	require.NotZero(t, none.wait(t, patience))
	require.Contains(t, none.errors.String(), "nothing was set up")
	p := h.start(t, nil, "up", "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
	lost := h.awaitKey(t, p)
	again := h.start(t, nil, "key", "recover", "--data-dir", h.dataDir())
	_, found := again.awaitLine(t, 0, patience, regexp.MustCompile(`^(fw_live_\S+)$`))
	require.Zero(t, again.wait(t, patience))
	require.NotEqual(t, lost, found[1])
	require.Equal(t, found[1], h.savedKey(t), "for the address at which the server is")
	requireKeyOpens(t, p, found[1])
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

// Another pepper than the one with which the keys were made is told at the next
// start, before the journal has a seal, and not by a 401 for every key.
func TestAnotherPepperIsToldAtTheStart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.start(t, nil, "up", "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
	h.awaitKey(t, p)
	p.kill()
	for _, command := range [][]string{{"up", "--listen", "127.0.0.1:0"}, {"worker"}, {"migrate"}, {"key", "recover"}} {
		other := h.start(t, []string{"FOREWARM_PEPPER=1:" + strings.Repeat("ab", 32)},
			append(command, "--data-dir", h.dataDir())...)
		require.Equal(t, 1, other.wait(t, patience), "%v: %s", command, other.errors.String())
		require.Contains(t, other.errors.String(), "another pepper", command)
	}
	again := h.start(t, nil, "up", "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
	requireKeyOpens(t, again, h.savedKey(t))
	require.Zero(t, again.stop(t, ending), again.errors.String())
}
