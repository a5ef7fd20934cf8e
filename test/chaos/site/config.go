package site

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// deployment is the owner tag of our machines, and the queue's name in Redis.
const deployment = "chaos"

// The pools. Spot has the spot market, and on-demand machines where that has
// none; Steady keeps one node warm.
const (
	Steady = "steady"
	Spot   = "spot"
)

// Bare is the pool of machines that run the node daemon.
const Bare = "bare"

// Shared is the pool of machines that run the node daemon and whose GPUs several may have at once.
const Shared = "shared"

// GPUsPerNode is of every machine, and Slots how many machines a pool may have.
const (
	GPUsPerNode = perNode
	Slots       = 6
)

// The timers that decide how long a machine may stand that no node owns.
const (
	Grace = 20 * time.Second
	Apart = 5 * time.Second
	Sweep = 3 * time.Second
)

// configuration is an installation in a hurry.
const configuration = `
data_dir: %[1]s
deployment: %[2]s
log: {level: info, format: json}
await_daemons: true
organization: {name: ops, max_gpus: 64, speculation_per_day: 1000}
timing:
  guard: 1s
  boot_timeout: 40s
  confirm_gone: 2s
  stock_out: 2s
  check_every: 500ms
  verify_every: 2s
  sweep_every: %[3]v
  settle: 10s
  orphan_grace: %[4]v
  orphan_apart: %[5]v
  dead_man: 8m
scheduling:
  preemption: true
  min_runtime: 1s
  leave_within: 10s
  most_preemptions: 20
provisioners:
  - kind: aws
    config:
      name: cloud
      region: %[6]s
      endpoint: http://127.0.0.1:%[7]d
      image_id: ami-0123456789abcdef0
      call_timeout: 8s
      retry_wait: 300ms
      offers:
        - {type: steady, instance_type: %[8]s, zone: %[9]s, model: l4, gpus: %[10]d, memory_mib: %[11]d,
           gpu_name: %[12]s, price_per_hour: %[13]s, boot: {p50: 4s, p95: 8s}}
        - {type: spot, instance_type: %[8]s, zone: %[9]s, market: spot, model: l4, gpus: %[10]d, memory_mib: %[11]d,
           gpu_name: %[12]s, price_per_hour: %[14]s, boot: {p50: 4s, p95: 8s}}
  - kind: exec
    config:
      name: rack
      command: [%[16]s, -ask-rack, "http://127.0.0.1:%[17]d"]
      daemon: true
      simulated: true
      timeout: 10s
      offers:
        - {type: %[18]s, region: %[19]s, model: l4, gpus: %[10]d, memory_mib: %[11]d, price_per_hour: %[20]s,
           boot: {p50: 1s, p95: 3s}}
        - {type: %[23]s, region: %[19]s, model: l4, gpus: %[10]d, memory_mib: %[11]d, price_per_hour: %[20]s,
           boot: {p50: 1s, p95: 3s}}
pools:
  - {name: steady, provisioner: cloud, region: %[6]s, instance_type: steady, min_nodes: 1, max_nodes: %[15]d,
     warm_hold: 5s, idle_release: 2s, max_lease: 10m}
  - {name: spot, provisioner: cloud, region: %[6]s, instance_type: spot, max_nodes: %[15]d,
     warm_hold: 5s, idle_release: 2s, max_lease: 10m,
     alternates: [{provisioner: cloud, region: %[6]s, instance_type: steady}]}
  - {name: bare, provisioner: rack, region: %[19]s, instance_type: %[18]s, min_nodes: %[21]d, max_nodes: %[22]d,
     warm_hold: 5s, idle_release: 2s, max_lease: 10m}
  - {name: shared, provisioner: rack, region: %[19]s, instance_type: %[23]s, shares_per_gpu: %[24]d,
     min_nodes: %[25]d, max_nodes: %[26]d, warm_hold: 5s, idle_release: 2s, max_lease: 10m}
`

// writeConfig writes the configuration of one process and returns its path. Each has
// a folder of its own.
func (s *Site) writeConfig(name string) (string, error) {
	dir := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a folder for %s: %w", name, err)
	}
	text := fmt.Sprintf(configuration, dir, deployment, Sweep, Grace, Apart, region, s.Proxies[CloudProxy].Port,
		kind, zone, perNode, memory, gpuName, formatDollars(onDemand), formatDollars(spot), Slots,
		s.RackScript, s.Rack.Port, rackType, rackRegion, formatDollars(rackPrice), RackKept, RackSlots,
		sharedType, SharesPerGPU, SharedKept, SharedSlots)
	path := filepath.Join(dir, "forewarm.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the configuration of %s: %w", name, err)
	}
	return path, nil
}

func formatDollars(micro int) string { return fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000) }

// forewarmCommand is the command of a process of the control plane.
func (s *Site) forewarmCommand(name string, env []string, args ...string) (func() *exec.Cmd, error) {
	config, err := s.writeConfig(name)
	if err != nil {
		return nil, err
	}
	env = append([]string{
		"HOME=" + s.Dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "GOMAXPROCS=2",
		"FOREWARM_DATABASE=" + s.Postgres.urlThrough(s.Proxies[PostgresProxy].Port),
		"FOREWARM_REDIS=" + s.Redis.urlThrough(s.Proxies[RedisProxy].Port),
		"FOREWARM_PEPPER=1:" + s.pepper,
		// The fake takes any credentials; the SDK wants some.
		"AWS_ACCESS_KEY_ID=AKIACHAOS", "AWS_SECRET_ACCESS_KEY=chaos", "AWS_EC2_METADATA_DISABLED=true",
	}, env...)
	return func() *exec.Cmd {
		//nolint:gosec,noctx // the program under test, which outlives the call that starts it
		cmd := exec.Command(s.Binary, append(args, "--config", config)...)
		cmd.Env = env
		return cmd
	}, nil
}
