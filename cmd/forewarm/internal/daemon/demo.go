package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/agent/llm/scripted"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/cmd/forewarm/internal/demo"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/server"
)

// demoCloud is a simulated cloud whose machines take real seconds to boot.
var demoCloud = fmt.Sprintf(`
name: sim
terminating: 3s
offers:
  - {type: sim-4xa100, model: a100-80g, gpus: 4, memory_mib: 81920, price_per_hour: 12.80,
     boot: {p50: %v, p95: %v, min: %v}}
`, demo.BootP50, demo.BootP95, demo.BootMin)

// demoPool is the one pool of the demo.
const demoPool = "demo-a100"

// demoConfig is a small installation of its own, apart from a real one's data.
func demoConfig(cfg Config) (Config, error) {
	var cloud yaml.Node
	if err := yaml.Unmarshal([]byte(demoCloud), &cloud); err != nil {
		return cfg, fmt.Errorf("reading the demo's cloud: %w", err)
	}
	seconds := func(n int) strictyaml.Duration { return strictyaml.Duration(time.Duration(n) * time.Second) }
	cfg.DataDir = filepath.Join(cfg.DataDir, "demo")
	cfg.Database, cfg.Redis = obs.Secret{}, obs.Secret{}
	cfg.Log.Level = "warn"
	cfg.Deployment = "forewarm-demo"
	cfg.Organization = Organization{Name: "demo", MaxGPUs: 16, SpeculationPerDay: provisioners.Price(200 * money.USD)}
	cfg.Timing = Timing{Guard: seconds(5), ConfirmGone: seconds(5), CheckEvery: seconds(1), VerifyEvery: seconds(10),
		SweepEvery: seconds(10), StockOut: seconds(20)}
	cfg.Provisioners = []Provisioner{{Kind: "sim", Config: *cloud.Content[0]}}
	cfg.Pools = []Pool{{
		Name: demoPool, Provisioner: "sim", InstanceType: "sim-4xa100", Model: "a100-80g", GPUsPerNode: 4,
		GPUMemoryMiB: 81920,
		Price:        provisioners.Price(1280 * money.USD / 100), MaxNodes: 4, WarmHold: seconds(60),
		IdleRelease: seconds(8),
	}}
	return cfg, nil
}

// runDemo shows the whole story on simulated machines. What it keeps is its own,
// so it can be killed at any moment and started again.
func runDemo(ctx context.Context, cfg Config, version string, contexts Contexts, t *terminal) error {
	cfg, err := demoConfig(cfg)
	if err != nil {
		return err
	}
	t.printLine(t.colourText("Forewarm demo", bold) +
		": machines, job history, people and the model are simulated (SIM); everything else is real.")
	cfg.alone = true
	release, err := lockDataDir(cfg.DataDir)
	if err != nil {
		return err
	}
	a, err := newApp(ctx, cfg, "demo")
	if err != nil {
		return errors.Join(err, release())
	}
	a.version, a.context = version, "demo"
	t.began = time.Now()
	open := func(c *server.Config) { c.OpenPage, c.Simulation = isLoopback(cfg.Listen), true }
	err = a.runControlPlane(ctx, contexts, t, open, func(ctx context.Context,
		base string) ([]actor, error) {
		return a.newActors(ctx, base, t)
	})
	return errors.Join(err, a.store.Close(), release())
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || (ip != nil && ip.IsLoopback()))
}

// newActors makes the demo's actors: the model, the agent, the person and the teller.
func (a *app) newActors(ctx context.Context, base string, t *terminal) ([]actor, error) {
	rhythm, files, err := demo.Prepare(a.cfg.DataDir, time.Now())
	if err != nil {
		return nil, err
	}
	agentKey, err := a.demoKey(ctx, "demo-agent", ledger.Key{Kind: ledger.AgentKey, Role: ledger.Member,
		Caps: quota.Caps{
			MaxGPUs: 8, MaxPerDay: 200 * money.USD, MaxLead: time.Hour, MaxWindow: time.Hour,
		}})
	if err != nil {
		return nil, err
	}
	personKey, err := a.demoKey(ctx, "demo-person", ledger.Key{Kind: ledger.PersonKey, Role: ledger.Member})
	if err != nil {
		return nil, err
	}
	person, err := client.New(base, personKey.Reveal(), httpx.NewClient(httpx.Config{Timeout: 20 * time.Second}))
	if err != nil {
		return nil, err
	}
	var pool ledger.Pool
	if err := a.store.Read(ctx, func(r ledger.Reader) error { pool, err = r.Pool(demoPool); return err }); err != nil {
		return nil, fmt.Errorf("finding the demo's pool: %w", err)
	}
	model, err := openListener(ctx, "127.0.0.1:0", "--listen, such as --listen 127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	routes := http.NewServeMux()
	routes.Handle("/v1/", &scripted.Server{})
	agent, err := demo.NewAgent(demo.AgentConfig{
		Files: files, API: base, Key: agentKey, Model: "http://" + model.Addr().String(), PoolID: pool.ID, Log: a.log,
		Tell: func(text string) { t.printStep(time.Now(), "agent", violet, text) },
	})
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	story := &demo.Story{Store: a.store, Tell: t.printStory}
	p := &demo.Person{Rhythm: rhythm, Files: files, Client: person, Pool: demoPool, Log: a.log}
	t.printLine(
		"The demo's day is 2 minutes long, and a sweep of 4 GPUs starts at about the same time each day. Ctrl-C ends the " +
			"demo; its machines stay in the simulated cloud until the next start.")
	return []actor{serveHTTP(model, routes, a.log), story.Run, agent.Run, p.Run}, nil
}

// printStory prints a step by its weight.
func (t *terminal) printStory(at time.Time, who, text string, weight demo.Weight) {
	code := map[string]string{"reservation": cyan, "node": blue, "allocation": yellow}[who]
	switch weight {
	case demo.Good:
		text = t.colourText(text, green)
	case demo.Bad:
		text = t.colourText(text, red)
	case demo.Detail:
		text = t.colourText(text, dim)
	}
	t.printStep(at, who, code, text)
}

// demoKey returns a key of the demo's cast, which is made at the first start and
// kept in a file, so that a restart finds what its owner reserved.
func (a *app) demoKey(ctx context.Context, name string, k ledger.Key) (obs.Secret, error) {
	path := filepath.Join(a.cfg.DataDir, name+".key")
	text, err := os.ReadFile(path)
	if err == nil {
		return obs.NewSecret(strings.TrimSpace(string(text))), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return obs.Secret{}, fmt.Errorf("reading the demo's key: %w", err)
	}
	var orgs []ledger.Organization
	if err := a.store.Read(ctx, func(r ledger.Reader) error {
		orgs, err = r.Organizations(ledger.Scope{All: true}, ledger.Page{Limit: 1})
		return err
	}); err != nil || len(orgs) == 0 {
		return obs.Secret{}, fmt.Errorf("finding the demo's organization: %w", err)
	}
	k.Name, k.OrganizationID = name, orgs[0].ID
	k, secret, err := a.minter.Mint(k)
	if err != nil {
		return obs.Secret{}, fmt.Errorf("minting the demo's key: %w", err)
	}
	if _, err := a.ledger.CreateKey(ctx, ledger.SystemActor("demo"), k); err != nil {
		return obs.Secret{}, fmt.Errorf("making the demo's key: %w", err)
	}
	if err := writeNew(path, []byte(secret.Reveal()+"\n")); err != nil {
		return obs.Secret{}, fmt.Errorf("keeping the demo's key: %w", err)
	}
	return secret, nil
}
