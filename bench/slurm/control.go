package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// controlPlane is forewarm up, in a process of its own, with the cluster as an observed
// pool.
type controlPlane struct {
	process *exec.Cmd
	dir     string
	url     string
	api     *client.Client // of the operator
	pool    contract.Pool
}

// configuration is that of forewarm up. What has a default in minutes is as much
// shorter as the week is faster; what has one in seconds is 1 or 2 s.
func configuration(c *cluster, o options, t timeline) string {
	fast := func(d time.Duration) string {
		return max(time.Second, t.ofMachine(d).Round(time.Second)).String()
	}
	return fmt.Sprintf(`listen: 127.0.0.1:0
organization: {name: default, max_gpus: %[1]d, speculation_per_day: 100000}
log: {level: warn}
timing:
  guard: %[2]s
  boot_timeout: %[3]s
  stock_out: %[4]s
  confirm_gone: 2s
  check_every: 1s
  verify_every: %[2]s
  sweep_every: %[2]s
  settle: %[2]s
  observe_every: 2s
provisioners:
  - kind: slurm
    config:
      name: elastic
      use: observed
      region: here
      command_prefix: [runuser, -u, %[5]s, --]
      slurm_conf: %[6]s
      offers:
        - {type: a100-4, partition: elastic, gres: "gpu:a100", model: a100-80g, gpus: %[7]d, price_per_hour: 10,
           boot: {p50: %[8]s, p95: %[9]s}}
pools:
  - {name: elastic, provisioner: elastic, region: here, instance_type: a100-4, model: a100-80g, max_nodes: %[10]d,
     use: observed, warm_hold: %[11]s, idle_release: %[13]s, create_window: %[12]s}
`, o.nodes*perNode, fast(time.Minute), fast(15*time.Minute), fast(3*time.Minute), ours, c.conf, perNode, o.boot,
		o.boot*5/4, o.nodes, fast(20*time.Minute), fast(10*time.Minute),
		t.ofMachine(o.idleRelease).Round(time.Second))
}

// startControlPlane starts forewarm up on the cluster, with an empty database.
func startControlPlane(ctx context.Context, c *cluster, o options, t timeline) (*controlPlane, error) {
	p := &controlPlane{dir: filepath.Join(c.dir, "forewarm")}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	file := filepath.Join(p.dir, "forewarm.yaml")
	if err := os.WriteFile(file, []byte(configuration(c, o, t)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return nil, fmt.Errorf("making a log: %w", err)
	}
	defer func() { _ = log.Close() }()
	//nolint:gosec // what the caller named
	p.process = exec.CommandContext(ctx, o.forewarm, "up", "--config", file, "--data-dir", filepath.Join(p.dir, "data"))
	p.process.Cancel = func() error { return p.process.Process.Signal(syscall.SIGTERM) }
	p.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.process.Env = append(os.Environ(), "HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir, "XDG_DATA_HOME="+p.dir,
		"FOREWARM_DATABASE=", "FOREWARM_REDIS=")
	p.process.Stderr = log
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.forewarm, err)
	}
	if err := p.connect(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// patience is how long a request to the program may take.
const patience = 30 * time.Second

// connect waits until the program serves, and finds its pool.
func (p *controlPlane) connect(ctx context.Context) error {
	server, key, err := rig.AwaitContext(filepath.Join(p.dir, "forewarm", "contexts.yaml"))
	if err != nil {
		return err
	}
	p.url = server
	if p.api, err = client.New(server, key, &http.Client{Timeout: patience}); err != nil {
		return err
	}
	pools, err := client.All(p.api.Pools(ctx, client.Filter{}))
	if err != nil {
		return fmt.Errorf("listing the pools: %w", err)
	}
	if len(pools) != 1 {
		return fmt.Errorf("there are %d pools, and should be one", len(pools))
	}
	p.pool = pools[0]
	return nil
}

// stop ends the program. What it logged is part of the error, if there is one.
func (p *controlPlane) stop() error {
	err := errors.Join(p.process.Process.Signal(syscall.SIGTERM), p.process.Wait())
	if err == nil {
		return nil
	}
	log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return fmt.Errorf("forewarm up: %w; it said: %.2000s", err, log)
}

// newAgentKey makes a key such as an agent gets, whose caps are beyond what the pool has.
func (p *controlPlane) newAgentKey(ctx context.Context, o options) (*client.Client, error) {
	made, err := p.api.CreateKey(ctx, contract.KeyCreate{Name: "agent", Kind: "agent", Role: "member",
		OrganizationID: "default",
		Caps: &contract.Caps{MaxGPUs: o.nodes * perNode, MaxPerDay: contract.Money{Amount: "100000", Currency: "USD"},
			MaxLeadSeconds: 86_400, MaxWindowSeconds: 4 * 3600}})
	if err != nil {
		return nil, fmt.Errorf("making the agent's key: %w", err)
	}
	return client.New(p.url, made.Secret, &http.Client{Timeout: patience})
}

// reports are the starts that Forewarm knows of.
func (p *controlPlane) reports(ctx context.Context) ([]claimed, error) {
	hosts := map[string]string{}
	for node, err := range p.api.Nodes(ctx, client.Filter{All: true}) {
		if err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		host, _, _ := strings.Cut(strings.TrimPrefix(node.Address, "slurm://"), "?")
		hosts[node.ID] = host
	}
	var found []claimed
	for a, err := range p.api.Allocations(ctx, client.Filter{All: true}) {
		if err != nil {
			return nil, fmt.Errorf("listing allocations: %w", err)
		}
		if a.Work == nil || a.ActiveAt.IsZero() {
			continue
		}
		found = append(found, newClaimed(a, hosts))
	}
	return found, nil
}

func newClaimed(a contract.Allocation, hosts map[string]string) claimed {
	id, _, _ := strings.Cut(a.Work.ID, "@")
	c := claimed{id: id}
	if len(a.ReservationIDs) == 0 {
		return c
	}
	c.nodes = []string{}
	seen := map[string]bool{}
	for _, d := range a.Devices {
		if !seen[d.NodeID] {
			seen[d.NodeID] = true
			c.nodes = append(c.nodes, hosts[d.NodeID])
		}
	}
	return c
}
