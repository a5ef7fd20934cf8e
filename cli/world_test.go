package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/local"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/provisioners/slurm"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

var monday = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// town is a whole installation, server, ledger, worker and simulated cloud, on a
// clock that the test owns, and a person with a shell in front of it.
type town struct {
	t        *testing.T
	clock    *clock.Manual
	ledger   *verbs.Ledger
	worker   *worker.Worker
	cloud    *sim.Cloud
	server   *server.Server
	url      string
	secret   string // of the operator
	env      map[string]string
	terminal bool     // whether the person sits at one
	stdin    string   // what they type
	in       *os.File // what is piped to them, in the place of that
	dir      string   // where their files are
	onPause  func()   // runs at each pause instead of the world
	seen     map[string]int
	became   []string              // what the programs printed that commands became
	daemons  map[string]string     // the keys of the daemons that have joined, by node
	beats    int64                 // that they have sent
	working  map[string][]*nodeJob // on each node
	attached map[string]bool       // the nodes that have a real daemon
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{t: t, clock: clock.NewManual(monday), seen: map[string]int{}, daemons: map[string]string{},
		working: map[string][]*nodeJob{}, attached: map[string]bool{}}
	store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: w.clock, Unsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	w.ledger = verbs.New(store, &ids.Sequence{},
		ledger.Config{Seals: ledger.NewSealKey([]byte("a key for seals in tests of the CLI"))})
	w.startInstallation(t)
	return w
}

func (w *town) startInstallation(t *testing.T) {
	t.Helper()
	cloud, err := sim.New(sim.Config{Name: "sim", Seed: 7, Offers: []sim.Offer{{
		Type: "a100-4", Region: "sim-1", Model: "a100", GPUs: 4, MemoryMiB: 81_920,
		Price: provisioners.Price(8 * money.USD),
		Boot:  sim.Boot{P50: 20 * time.Second, P95: 20 * time.Second, Min: 20 * time.Second},
	}, { // as in the demo
		Type: "sim-4xa100", Model: "a100-80g", GPUs: 4, MemoryMiB: 81_920,
		Price: provisioners.Price(12*money.USD + 800_000),
		Boot:  sim.Boot{P50: 12 * time.Second, P95: 12 * time.Second, Min: 12 * time.Second},
	}}}, w.clock)
	require.NoError(t, err)
	w.cloud = cloud
	tower, err := local.New(local.Config{Simulate: 2, HostID: "tower"}, w.clock)
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	w.worker, err = worker.New(w.ledger, memqueue.New(quiet), []provisioners.Provisioner{cloud, tower},
		worker.Config{Deployment: "test", Clock: w.clock, Logger: quiet, Rand: rand.New(rand.NewPCG(1, 1))})
	require.NoError(t, err)
	pepper, err := keys.ParsePepper("1:" + strings.Repeat("5a", 32))
	require.NoError(t, err)
	free := auth.Rate{PerSecond: -1}
	w.server, err = server.New(server.Config{Ledger: w.ledger, Clock: w.clock, IDs: &ids.Sequence{},
		Random:  rand.NewChaCha8([32]byte{1}),
		Peppers: []keys.Pepper{pepper}, Environment: "test", Version: "1.2.3", Simulation: true,
		Limits: server.Limits{Reads: free, Writes: free, Agents: free, OrganizationWrites: free, Failures: free}})
	require.NoError(t, err)
	root, secret, err := auth.Minter{Environment: "test", Pepper: pepper,
		Random: rand.NewChaCha8([32]byte{2})}.Mint(ledger.Key{Name: "root"})
	require.NoError(t, err)
	_, err = w.ledger.Bootstrap(t.Context(), "acme", quota.Limits{GPUs: 8, SpeculationPerDay: 100 * money.USD}, root)
	require.NoError(t, err)
	listening := httptest.NewUnstartedServer(w.server)
	listening.Config.Protocols = httpx.NewServer("", nil).Protocols
	listening.Start()
	t.Cleanup(listening.Close)
	w.url, w.secret = listening.URL, secret.Reveal()
	w.env = map[string]string{"FOREWARM_API": w.url, "FOREWARM_API_KEY": secret.Reveal(),
		"XDG_CONFIG_HOME": filepath.Join(t.TempDir(), "config"), "TZ": "Europe/Berlin"}
}

// passTime lets time pass and the installation work.
func (w *town) passTime(d time.Duration) {
	w.t.Helper()
	for step := min(d, 5*time.Second); d > 0; d -= step {
		w.clock.Advance(step)
		for {
			handled, err := w.worker.Step(w.t.Context())
			require.NoError(w.t, err)
			if handled == 0 {
				break
			}
		}
	}
}

// runCommand runs one command line.
func (w *town) runCommand(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	return w.runWithContext(w.t.Context(), args...)
}

func (w *town) runWithContext(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	root := w.newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetIn(strings.NewReader(w.stdin))
	if w.in != nil {
		root.SetIn(w.in)
	}
	code = Execute(ctx, root)
	w.inPlainWords(args, errs.String(), code)
	return out.String(), errs.String(), code
}

// leaks are words of the wire and of Go, which no person should have to read.
var leaks = regexp.MustCompile(`/v1/|\b(GET|POST|PUT|PATCH|DELETE) |Idempotency-Key|If-Match|ETag|Retry-After|` +
	`strconv|dial tcp|json:|e\+\d\d|expected (number|string|value|length)|` +
	`_seconds|\[\d+\]|exdates|rrule|dst_policy|min_duration|not_(earlier|later)_than|(^|\s)/[a-z_]+[: ]|` +
	`\d+h\d+m\d+s|did you mean|invalid syntax|context (canceled|deadline)|\b(4|5)\d\d\b.*server answered`)

// ranked is a line that a job wrote on a node.
var ranked = regexp.MustCompile(`(?m)^\[\d+\] .*\n`)

// inPlainWords checks what every failure of every test says: nothing of the
// wire, and a command to run next.
func (w *town) inPlainWords(args []string, errs string, code int) {
	w.t.Helper()
	if code == exit.OK || len(args) > 0 && args[0] == "api" || len(args) > 0 && args[0] == "exec" && code == 42 {
		return // 42: what a command said that ran elsewhere
	}
	errs = ranked.ReplaceAllString(errs, "")
	require.NotRegexp(w.t, leaks, strings.NewReplacer(w.url, "", "http://", "").Replace(errs), "%v", args)
	if code != exit.Interrupt && code != exit.Terminated {
		require.Regexp(w.t, `(?m)^Next:  \S`, errs, "%v", args)
	}
}

// newRoot is a fresh command tree in front of this town.
func (w *town) newRoot() *cobra.Command {
	return newRoot(app.World{Version: "1.2.3", Clock: w.clock, Getenv: func(name string) string { return w.env[name] },
		IsSet:    func(name string) bool { _, is := w.env[name]; return is },
		Terminal: func(any) bool { return w.terminal }, OpenSlurm: openRecordedSlurm, Become: w.become,
		SessionPatience: time.Millisecond,
		Pause: func(ctx context.Context, d time.Duration) error {
			if w.onPause != nil {
				w.onPause()
			} else {
				w.passTime(d)
			}
			return ctx.Err()
		}})
}

// become runs a program as Become does, but for the streams of this process, which are
// not the test's to give away: what it prints is kept.
func (w *town) become(argv []string) error {
	if argv[0] != "env" && argv[0] != "sh" {
		return errors.New("it is not installed here, or not in PATH")
	}
	program := osexec.Command(argv[0], argv[1:]...)
	program.Stdin = strings.NewReader(w.stdin)
	out, err := program.CombinedOutput()
	w.became = append(w.became, string(out))
	return err
}

// createTower makes a pool of this machine, with simulated GPUs.
func (w *town) createTower() {
	w.t.Helper()
	w.mustRun("pools", "create", "tower", "--provisioner", "local", "--model", "SIM gpu", "--region", "local",
		"--instance-type", "local", "--gpus-per-node", "2", "--memory", "80", "--max-nodes", "1", "--price", "0",
		"--simulated")
}

// mustRun runs a command line that succeeds and returns its data.
func (w *town) mustRun(args ...string) string {
	w.t.Helper()
	out, errs, code := w.runCommand(args...)
	require.Equal(w.t, exit.OK, code, "%v: %s", args, errs)
	return strings.TrimSpace(out)
}

// createMember makes a person at example.com, and returns a key of theirs.
func (w *town) createMember(name string) (key string) {
	w.t.Helper()
	w.mustRun("users", "create", name+"@example.com", "--role", "member")
	return w.mustRun("key", "create", name, "--user", name+"@example.com", "--role", "member", "--jq", ".secret")
}

// createPool makes the pool of most tests: two nodes of four GPUs.
func (w *town) createPool() {
	w.t.Helper()
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100", "--region", "sim-1",
		"--instance-type", "a100-4", "--gpus-per-node", "4", "--memory", "80", "--max-nodes", "2", "--price",
		"8.40", "--simulated")
}

// openRecordedSlurm reaches a cluster that was recorded: the one that --slurm-conf
// names, else that of testdata/slurm/elastic. Its commands run as those of a real
// one do, behind a prefix.
func openRecordedSlurm(access app.SlurmAccess) (app.SlurmCluster, error) {
	remote, err := filepath.Abs(filepath.Join("testdata/slurm", cmp.Or(access.SlurmConf, "elastic"), "remote"))
	if err != nil {
		return app.SlurmCluster{}, err
	}
	commands := slurm.NewCommands(slurm.Config{CommandPrefix: []string{remote}})
	return app.SlurmCluster{Run: commands.Run, User: commands.User, Offers: []app.SlurmOffer{
		{Partition: "gpu", GPUs: 1, Price: 8 * money.USD}}}, nil
}
