package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/watch"
)

func newLookCommand(o outside) *cobra.Command {
	var path, format string
	flags := defaultConfig()
	c := &cobra.Command{
		Use: "look", Short: "Look at the GPUs of this machine once, and print what is seen", Args: cobra.NoArgs,
		Example: "  forewarm-node look\n  forewarm-node look --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path, o.getenv, cmd.Flags())
			if err != nil {
				return err
			}
			if format != "table" && format != "json" {
				return &usageError{fmt.Errorf("--output %q: must be table or json", format)}
			}
			look, err := lookOnce(cmd, cfg, o)
			if err != nil {
				return err
			}
			if format == "json" {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(look)
			}
			return printLook(cmd.OutOrStdout(), look)
		},
	}
	flags.addFlags(c.Flags())
	c.Flags().StringVar(&path, "config", "", "the configuration file")
	c.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return c
}

func lookOnce(cmd *cobra.Command, cfg config, o outside) (contract.NodeLook, error) {
	source := newSource(cfg)
	defer source.Close()
	r, err := source.Look(cmd.Context())
	if err != nil {
		return contract.NodeLook{}, err
	}
	return watch.New(oneReading{r}, nil, cfg.policy(), watch.Memory{}.For("")).Look(cmd.Context(), o.clock.Now()), nil
}

// oneReading is a source that has looked already.
type oneReading struct{ gpu.Reading }

func (s oneReading) Look(context.Context) (gpu.Reading, error) { return s.Reading, nil }
func (s oneReading) Close()                                    {}

// printLook writes a table of at most 80 columns.
func printLook(w io.Writer, look contract.NodeLook) error {
	from := look.Source
	if from == gpu.FromSimulated {
		from = "SIM: no figure is real"
	}
	if _, err := fmt.Fprintf(w, "driver %s (%s)\n", orDash(look.Driver), from); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "GPU\tMODEL\tUSE\tMEMORY\tTEMP\tPOWER\tHEALTH")
	for _, g := range look.GPUs {
		_, _ = fmt.Fprintf(t, "%d\t%.24s\t%s\t%s\t%s\t%s\t%s\n", g.Index, g.Model, figure(g.Utilization, "%"),
			figure(g.MemoryUsedMiB, " MiB"), figure(g.Temperature, " C"), watts(g.Power), g.Health)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range look.GPUs {
		for _, e := range g.Evidence {
			_, _ = fmt.Fprintf(w, "GPU %d: %s\n", g.Index, e.Detail)
		}
	}
	if look.Problem != "" {
		_, _ = fmt.Fprintln(w, look.Problem)
	}
	if look.ExporterProblem != "" {
		_, _ = fmt.Fprintln(w, "the DCGM exporter:", look.ExporterProblem)
	}
	return nil
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return s
}

func figure(v *int, unit string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%d%s", *v, unit)
}

func watts(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f W", *v)
}
