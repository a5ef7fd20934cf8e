package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/forewarm/forewarm/cmd/forewarm/internal/companion"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/local"
)

// nodeProgram is the daemon of a node.
const nodeProgram = "forewarm-node"

// systemHoldDir is where holders with a user of their own get to: a data directory is
// closed to them.
const systemHoldDir = "/var/lib/forewarm-holds"

// companions run the daemon of this machine's node beside the API at a URL, if the machine is
// one.
func companions(ctx context.Context, a *app, t *terminal, base string) ([]actor, error) {
	var actors []actor
	for _, p := range a.provs {
		host, ok := p.(*local.Host)
		if !ok {
			continue
		}
		how := host.Daemon()
		if !how.Wanted {
			continue
		}
		program, err := findNodeProgram()
		if err != nil {
			t.printLack("node", nothingHere+err.Error())
			continue
		}
		own := os.Geteuid() == 0
		printCompanion(ctx, t, host, own)
		at, err := reachedHere(base)
		if err != nil {
			return nil, err
		}
		cfg := companion.Config{Program: program, URL: at, StateDir: filepath.Join(a.cfg.DataDir, "nodes"),
			HoldDir: cmp.Or(how.HoldDir, defaultHoldDir(a.cfg.DataDir, own)), SharedUser: how.SharedUser,
			LogLevel: a.cfg.Log.Level, LogFormat: a.cfg.Log.Format, Log: a.log, Output: os.Stderr, Token: joinToken(a),
			Node: func() (companion.Node, bool) {
				used, ok := host.Adopted()
				return companion.Node{ID: used.NodeID, Simulate: used.Simulate, Seed: used.Seed}, ok
			}}
		actors = append(actors, companion.New(cfg).Run)
	}
	return actors, nil
}

// nothingHere begins why this machine's node is of no use.
const nothingHere = "no jobs, forewarm exec, port and cp here: "

// printCompanion says what the daemon beside this process makes possible on this machine. own is whether it can give
// holders a user of their own. A machine without GPUs is offered once it has some, and may be the node of nothing yet.
func printCompanion(ctx context.Context, t *terminal, host *local.Host, own bool) {
	_, adopted := host.Adopted()
	_, err := host.Offers(ctx)
	switch {
	case err != nil && !adopted:
		t.printLack("node", nothingHere+"this machine offers no GPU: "+err.Error())
	case own:
		t.printNote("node", "its daemon runs beside: jobs, forewarm exec, port and cp work here")
	case host.Daemon().SharedUser:
		t.printNote("node", "its daemon runs beside: jobs, forewarm exec, port and cp work here, and make everybody you")
	default:
		t.printLack("node", nothingHere+"this process cannot give holders a user of their own; --shared-user lets "+
			"them be you")
	}
}

// defaultHoldDir is where holders' folders are made if the configuration does not say.
func defaultHoldDir(dataDir string, ownUsers bool) string {
	if ownUsers {
		return systemHoldDir
	}
	return filepath.Join(dataDir, "holds")
}

// findNodeProgram finds the daemon beside this program, or else where a shell would.
func findNodeProgram() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), nodeProgram)
		if found, err := exec.LookPath(beside); err == nil {
			return found, nil
		}
	}
	found, err := exec.LookPath(nodeProgram)
	if err != nil {
		return "", fmt.Errorf("there is no %s beside this program: make bin/%s", nodeProgram, nodeProgram)
	}
	return filepath.Abs(found)
}

// reachedHere is the URL at which this machine reaches what listens at another, which may
// name all of its addresses.
func reachedHere(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return u.String(), nil
}

// daemonJoin makes what the daemon of a new machine needs to join the control plane at a URL,
// which hands out some programs.
func daemonJoin(a *app, at string,
	programs provisioners.DaemonPrograms) func(context.Context, node.Node) (provisioners.Daemon, error) {
	return func(ctx context.Context, n node.Node) (provisioners.Daemon, error) {
		made, text, err := a.minter.DeriveNode(n.ID, n.Generation)
		if err != nil {
			return provisioners.Daemon{}, err
		}
		if err := a.ledger.ProvideJoinToken(ctx, ledger.SystemActor("worker"), n.ID, made); err != nil {
			return provisioners.Daemon{}, err
		}
		return provisioners.Daemon{URL: at, Token: provisioners.JoinToken(text.Reveal()), Programs: programs}, nil
	}
}

// preparePrograms finds what a control plane at a URL hands out to the machines of its
// provisioners, and refuses those that would miss something.
func preparePrograms(a *app, at string) (provisioners.DaemonPrograms, error) {
	programs, err := a.cfg.findDaemonPrograms(at)
	if err == nil {
		err = checkDaemonStarters(a, at, programs)
	}
	return programs, err
}

// checkDaemonStarters refuses provisioners that are to start daemons where nobody said where
// the control plane is, or that it hands out what their machines download.
func checkDaemonStarters(a *app, at string, programs provisioners.DaemonPrograms) error {
	for i, p := range a.provs {
		key := fmt.Sprintf("provisioners.%d.config", i)
		if s, ok := p.(provisioners.DaemonStarter); ok && s.StartsDaemons() && at == "" {
			return a.cfg.valueError(key, "starts the daemons of its nodes, which have to know where the control plane is",
				"set server.public_url")
		}
		d, ok := p.(provisioners.DaemonDownloader)
		switch {
		case !ok || !d.DownloadsDaemons():
		case programs == provisioners.DaemonPrograms{}:
			return a.cfg.valueError(key, fmt.Sprintf("has machines download the daemon, and %s has no build of it, such as %s",
				a.cfg.downloadDir(), nodeAMD64), "build them with make release/node, or set server.download_dir")
		case !strings.HasPrefix(at, "https://"):
			return a.cfg.valueError(key, "has other machines download the daemon, and send it a key, from "+at,
				"set server.public_url to an https:// address")
		}
	}
	return nil
}

// joinToken makes tokens with which a node's daemon may join once.
func joinToken(a *app) func(context.Context, string) (obs.Secret, error) {
	return func(ctx context.Context, nodeID string) (obs.Secret, error) {
		made, text, err := a.minter.MintNode()
		if err != nil {
			return obs.Secret{}, err
		}
		_, err = a.ledger.IssueJoinToken(ctx, ledger.SystemActor("companion"), nodeID, made, ledger.MostTokenLife)
		return text, err
	}
}
