package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/report"
)

func newSelfTestCommand(o outside) *cobra.Command {
	var path string
	flags := defaultConfig()
	c := &cobra.Command{
		Use: "self-test", Args: cobra.NoArgs,
		Short: "Test that this program could go on where the daemon of this machine is, without disturbing it",
		Long: "It reads the configuration, the node's identity and what is known of holds, and looks at the GPUs once. It " +
			"starts, ends and sends nothing. A machine without a driver passes, as the daemon runs there, too.",
		Example: "  forewarm-node self-test --config /etc/forewarm/forewarm-node.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path, o.getenv, cmd.Flags())
			if err != nil {
				return err
			}
			return testSelf(cmd, cfg, o)
		},
	}
	flags.addFlags(c.Flags())
	flags.addRunFlags(c.Flags())
	c.Flags().StringVar(&path, "config", "", "the configuration file")
	return c
}

// testSelf says what it has tested, and fails with the first that is wrong.
func testSelf(cmd *cobra.Command, cfg config, o outside) error {
	if cfg.URL == "" || cfg.Node == "" {
		return errNotTold
	}
	for _, test := range []struct {
		what string
		do   func() error
	}{
		{"the configuration", func() error { return nil }}, // it was loaded
		{"the node's identity", func() error {
			state, err := report.OpenState(cfg.StateDir)
			if err == nil {
				_, err = state.Identity(cfg.Node)
			}
			return err
		}},
		{"what is known of holds", func() error { return hold.CheckBook(filepath.Join(cfg.StateDir, "holds.json")) }},
		{"the GPUs", func() error {
			_, err := lookOnce(cmd, cfg, o)
			if errors.Is(err, gpu.ErrNoDriver) {
				err = nil
			}
			return err
		}},
	} {
		from := o.uptime()
		if err := test.do(); err != nil {
			return fmt.Errorf("%s: %w", test.what, err)
		}
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "ok  %s (%s)\n", test.what, (o.uptime() - from).Round(time.Millisecond))
	}
	return nil
}
