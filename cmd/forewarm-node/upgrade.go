package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/report"
	"github.com/forewarm/forewarm/node/upgrade"
)

// upgradeFlags say what is upgraded, and to what.
type upgradeFlags struct {
	config, program, sum, from, restart string
	within                              time.Duration
}

// mostProgram bounds a download, in bytes.
const mostProgram = 512 << 20

func newUpgradeCommand(o outside) *cobra.Command {
	var u upgradeFlags
	c := &cobra.Command{
		Use: "upgrade", Args: cobra.NoArgs,
		Short: "Replace the daemon of this machine by the version that its control plane hands out",
		Long: "It downloads the program, checks its sum, has it test itself, puts it in the place of the old one, which " +
			"is kept beside it as forewarm-node.previous, and starts the daemon anew. Where the control plane does not hear " +
			"the new daemon within two minutes, the old program comes back. What runs for holders goes on meanwhile. " +
			"Upgrade one node first.",
		Example: "  sudo forewarm-node upgrade --sha256 $(awk '$2 == \"forewarm-node-linux-amd64\" {print $1}' " +
			"forewarm-node.sha256)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return u.run(cmd, o)
		},
	}
	f := c.Flags()
	f.StringVar(&u.config, "config", "/etc/forewarm/forewarm-node.yaml", "the daemon's configuration file")
	f.StringVar(&u.program, "program", "/usr/local/bin/forewarm-node", "the program to replace")
	f.StringVar(&u.sum, "sha256", "", "the sum of the new program, as make release/node writes it (required)")
	f.StringVar(&u.from, "from", "", "the https:// address of the new program (default where the control plane "+
		"hands out this build of it)")
	f.StringVar(&u.restart, "restart", "systemctl restart forewarm-node", "what starts the daemon anew")
	f.DurationVar(&u.within, "within", upgrade.Within, "how long the control plane may take to hear the new daemon")
	return c
}

func (u upgradeFlags) run(cmd *cobra.Command, o outside) error {
	if sum, err := hex.DecodeString(u.sum); err != nil || len(sum) != 32 {
		return &usageError{fmt.Errorf("--sha256 %q: must be the sum of the new program, 64 hexadecimal digits", u.sum)}
	}
	if err := u.checkFrom(); err != nil {
		return err
	}
	restart := strings.Fields(u.restart)
	if len(restart) == 0 {
		return &usageError{errors.New("--restart: must be a command")}
	}
	cfg, err := loadConfig(u.config, o.getenv, cmd.Flags())
	if err != nil {
		return err
	}
	if cfg.URL == "" || cfg.Node == "" {
		return errNotTold
	}
	state, err := report.OpenState(cfg.StateDir)
	if err != nil {
		return err
	}
	defer outliveTerminal()()
	say := func(text string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), text) }
	err = upgrade.Run(cmd.Context(), upgrade.Config{Program: u.program, SHA256: u.sum, Say: say,
		URL:      cmp.Or(u.from, strings.TrimSuffix(cfg.URL, "/")+"/download/"+buildName()),
		Within:   u.within,
		SelfTest: []string{"self-test", "--config", u.config}, Restart: runCommand(restart),
		Welcomed: func() (upgrade.Daemon, error) {
			w, err := state.Welcomed()
			return upgrade.Daemon{BootID: w.BootID, Began: w.Epoch}, err
		},
		Now: func() (now upgrade.Daemon, err error) {
			now.BootID, now.Began, err = thisBoot(o.clock)
			return now, err
		},
		HTTP: newDownloader()})
	if failed, ok := errors.AsType[*upgrade.NotTriedError](err); ok {
		err = &fixableError{err, u.fix(failed.Stage)}
	}
	return err
}

// fix is what helps where a program was not tried.
func (u upgradeFlags) fix(failed upgrade.Stage) string {
	switch {
	case failed == upgrade.Download && u.from != "":
		return "see whether the address of --from hands out " + buildName()
	case failed == upgrade.Download:
		return "put " + buildName() + " beside forewarm or into server.download_dir, where the control plane runs, or say " +
			"where it is: --from https://…"
	case failed == upgrade.Sum:
		return "give the sum that forewarm-node.sha256 has for " + buildName() + ", or have the build handed out whose sum " +
			"it is"
	}
	return "mend on this machine what the test names, or upgrade to another version"
}

// checkFrom says why a program cannot be had from where --from says.
func (u upgradeFlags) checkFrom() error {
	address, err := url.Parse(u.from)
	if u.from == "" || err == nil && address.Host != "" && (address.Scheme == "https" || address.Scheme == "http") {
		return nil
	}
	return &usageError{errors.New("--from: must be an https:// (or http://) address")} // it may be a secret
}

// newDownloader returns a client that brings a program.
func newDownloader() *http.Client {
	c := httpx.NewClient(httpx.Config{Timeout: 10 * time.Minute, MaxBody: mostProgram,
		UserAgent: "forewarm-node/" + versionText()})
	c.CheckRedirect = upgrade.CheckRedirect
	return c
}

// outliveTerminal has this process go on when the terminal is closed, or the connection over which it was entered is
// cut, until it is undone. Programs that it starts do not inherit that.
func outliveTerminal() (undo func()) {
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGHUP, syscall.SIGPIPE)
	return func() { signal.Stop(unheard) }
}

var errNotTold = &usageError{errors.New("it needs the control plane's address and the node's id: url and node in the " +
	"configuration")}

// buildName is what the control plane calls a build like this one.
func buildName() string {
	if gpu.HasNVML {
		return "forewarm-node-linux-" + runtime.GOARCH
	}
	return "forewarm-node-static-linux-" + runtime.GOARCH
}

// runCommand runs a command line, and has its error say what it printed. It does not end with the terminal.
func runCommand(words []string) func(context.Context) error {
	return func(ctx context.Context) error {
		run := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the operator's
		run.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		said, err := run.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("the restart command failed: %s: %w", strings.Join(words, " "), err)
			if text := strings.TrimSpace(string(said)); text != "" {
				err = fmt.Errorf("%w: %.300s", err, text)
			}
			return err
		}
		return nil
	}
}
