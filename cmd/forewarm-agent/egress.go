package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/agent/egress"
)

func egressCommand(o outside) *cobra.Command {
	var path, log string
	verify := &cobra.Command{
		Use: "verify", Short: "Check that the log of everything sent was not changed", Args: refuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(log); log != "" && err != nil {
				return &usageError{fmt.Errorf("--log: %w", err)}
			}
			if log == "" {
				cfg, _, err := loadConfig(path, o.getenv)
				if err != nil {
					return err
				}
				log = filepath.Join(cfg.StateDir, egressFile)
			}
			last, err := egress.Verify(log)
			if err != nil {
				return err
			}
			if last.Seq == 0 {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: 0 entries: nothing was sent yet (%s)\n", log)
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: %d entries, last %s, hash %s\n", last.Seq,
				last.Time.UTC().Format("2006-01-02T15:04:05Z"), last.Hash)
			return err
		},
	}
	verify.Flags().StringVar(&path, "config", defaultConfig, "the configuration file")
	verify.Flags().StringVar(&log, "log", "", "the log itself, instead of the one of the configuration")
	group := &cobra.Command{Use: "egress", Short: "See what left this machine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	group.AddCommand(verify)
	return group
}
