package daemon

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/provisioners/local/discover"
	"github.com/forewarm/forewarm/server"
)

func upCommand(version string, contexts Contexts) *cobra.Command {
	var f flags
	var demo, sharedUser bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in this process: API, worker, page; no other service is needed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.readConfig()
			if err != nil {
				return err
			}
			t := newTerminal(cmd.OutOrStdout())
			if demo {
				return runDemo(cmd.Context(), cfg, version, contexts, t)
			}
			if len(cfg.Provisioners) == 0 {
				if err := cfg.declareLocal(cmd.Context(), t, sharedUser); err != nil {
					return err
				}
			} else if sharedUser {
				return cfg.valueError("provisioners", "has the machines of this installation, and --shared-user is for one "+
					"without a configuration", "write shared_user: true in the config of the provisioner local")
			}
			return runUp(cmd.Context(), cfg, version, contexts, t)
		},
	}
	f.addFlags(cmd)
	f.addListen(cmd)
	cmd.Flags().BoolVar(&demo, "demo", false,
		"run a demo with simulated machines, a synthetic history and a demo agent")
	cmd.Flags().BoolVar(&sharedUser, "shared-user", false,
		"let whoever holds GPUs of this machine run commands as you, where this process cannot give them users of their own")
	cmd.MarkFlagsMutuallyExclusive("demo", "shared-user")
	cmd.MarkFlagsMutuallyExclusive("demo", "config") // the demo is an installation of its own
	return cmd
}

// runUp runs the whole control plane in this process.
func runUp(ctx context.Context, cfg Config, version string, contexts Contexts, t *terminal) error {
	cfg.alone = true
	release, err := lockDataDir(cfg.DataDir)
	if err != nil {
		return err
	}
	a, err := newApp(ctx, cfg, "live")
	if err != nil {
		return errors.Join(err, release())
	}
	a.version = version
	err = a.runControlPlane(ctx, contexts, t, nil, func(ctx context.Context, base string) ([]actor, error) {
		return companions(ctx, a, t, base)
	})
	return errors.Join(err, a.store.Close(), release())
}

// declareLocal makes this machine, with its GPUs or simulated ones where it has none, a
// pool of one node. What the pool has is what the machine offers.
func (c *Config) declareLocal(ctx context.Context, t *terminal, sharedUser bool) error {
	devices, err := discover.System().Devices(ctx)
	config := "name: local\n"
	if err != nil || len(devices) == 0 {
		t.printNote("GPUs",
			fmt.Sprintf("none found here (%v); offering 4 simulated ones, marked SIM", failureReason(err)))
		config += "simulate: 4\n"
	} else {
		t.printNote("GPUs", fmt.Sprintf("%d× %s", len(devices), devices[0].Model))
	}
	if sharedUser {
		config += "shared_user: true\n"
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(config), &node); err != nil {
		return fmt.Errorf("declaring this machine: %w", err)
	}
	c.Provisioners = []Provisioner{{Kind: "local", Config: *node.Content[0]}}
	if len(c.Pools) == 0 {
		c.Pools = []Pool{{Name: "local", Provisioner: "local", Region: "local", InstanceType: "local", MaxNodes: 1}}
	}
	return nil
}

func failureReason(err error) string {
	if err == nil {
		return "no device"
	}
	return err.Error()
}

// runControlPlane serves the API and works until the context ends. change may adjust the
// server; more are actors beside it, made once the API's address is known.
func (a *app) runControlPlane(ctx context.Context, contexts Contexts, t *terminal, change func(*server.Config),
	more func(ctx context.Context, base string) ([]actor, error)) error {
	pools, err := a.declaredPools(ctx)
	if err != nil {
		return err
	}
	if err := a.migrateSchema(ctx); err != nil {
		return err
	}
	if err := a.checkPepper(ctx); err != nil {
		return err
	}
	l, err := a.cfg.listenAPI(ctx)
	if err != nil {
		return err
	}
	base := "http://" + l.Addr().String()
	signIn, err := newSignInToken()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s, err := a.newServer(func(c *server.Config) {
		c.SignInToken = signIn
		if change != nil {
			change(c)
		}
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	q, err := a.openQueue(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("opening the queue: %w", err), l.Close())
	}
	w, err := a.newWorker(q, base)
	if err != nil {
		return errors.Join(err, l.Close(), q.Close())
	}
	key, err := a.beginEmbedded(ctx, pools)
	if err != nil {
		return errors.Join(err, l.Close(), q.Close())
	}
	mark, err := a.checkJournal(ctx)
	if err != nil {
		return errors.Join(err, l.Close(), q.Close())
	}
	a.printGreeting(ctx, t, greeting{base: base, key: key, signIn: signIn}, contexts)
	actors := []actor{serveHTTP(l, s, a.log), s.Run, w.Run, followScheduling(a), a.cycles.run}
	if more != nil {
		extra, err := more(ctx, base)
		if err != nil {
			return errors.Join(err, l.Close(), q.Close())
		}
		actors = append(actors, extra...)
	}
	err = runGroup(ctx, actors...)
	mark.Finish(ctx) // the worker's mark knows nothing of what was handed out before the worker began
	return errors.Join(err, a.cycles.finish(ctx), q.Close())
}

// newSignInToken is the one-time sign-in of the page.
func newSignInToken() (obs.Secret, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return obs.Secret{}, fmt.Errorf("making a sign-in link: %w", err)
	}
	return obs.NewSecret(base64.RawURLEncoding.EncodeToString(random)), nil
}

// greeting is what a start has to tell.
type greeting struct {
	base   string     // URL
	key    obs.Secret // the first one; zero: an earlier start told it
	signIn obs.Secret // opens the page once
}

// printGreeting says what is up and what to do next.
func (a *app) printGreeting(ctx context.Context, t *terminal, g greeting, contexts Contexts) {
	t.printNote("store", a.cfg.maskedText())
	t.printNote("API", g.base+"/v1   (description: "+g.base+"/docs)")
	if g.signIn.IsZero() {
		t.printNote("page", g.base+"/")
	} else {
		t.printNote("page", g.base+"/login?t="+g.signIn.Reveal()+"   (opens once, for 10 minutes)")
	}
	before, err := a.notedAddress()
	if err = errors.Join(err, a.noteAddress(g.base)); err != nil {
		a.log.Warn("forewarm key recover may not know this address", "error", err)
	}
	if g.key.IsZero() {
		t.printNote("context", a.savedContext(ctx, contexts, before, g.base))
		return
	}
	saved, err := contexts.Save(a.context, g.base, g.key)
	if err != nil {
		a.log.Warn("the context could not be saved; the key is in a file", "path", a.pendingKey(), "error", err)
		return
	}
	if err := a.dropPending(); err != nil {
		a.log.Warn("the first key is saved, and still in a file", "path", a.pendingKey(), "error", err)
	}
	t.printNote("context", fmt.Sprintf("%q saved and selected, with the first key", saved))
	self := programName(exec.LookPath, os.Args[0])
	t.printLine("Next:  " + self + " status   ·   " + self + " " + firstRequest(a.cfg.Pools))
}

// firstRequest is what somebody can ask for first: a pool where there is none, else GPUs
// of a pool now, or nodes that are warm later where the cluster's own scheduler hands GPUs
// out: those are whole, however few GPUs are asked for.
func firstRequest(pools []Pool) string {
	if len(pools) == 0 {
		return "pools create --help"
	}
	name := pools[0].Name
	if pools[0].Use == useObserved {
		return fmt.Sprintf("reserve --pool %s --gpus %d --at 'tomorrow 09:00' --for 1h", name, max(1, pools[0].GPUsPerNode))
	}
	return "allocate --pool " + name + " --gpus 1 --for 30m"
}

// programName is how this program is called: by its name where a shell finds it under
// that, else as it was started, such as bin/forewarm.
func programName(find func(string) (string, error), started string) string {
	if _, err := find("forewarm"); err == nil || started == "" {
		return "forewarm"
	}
	return started
}
