package decisions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show DECISION", Short: "Show a decision with its record", Args: flags.ExactArgs("DECISION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := fetchDecision(a, cmd, args[0])
			if err != nil {
				return err
			}
			if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
				return output.One(a, cmd, decisionView, d)
			}
			if err := output.One(a, cmd, decisionView, d); err != nil {
				return err
			}
			return writeRecord(cmd.OutOrStdout(), d)
		},
	}
}

func writeRecord(w io.Writer, d contract.Decision) error {
	text := "its record holds the work of others and was left out"
	switch {
	case d.Redacted:
	case len(d.Record) == 0:
		text = "its record was too long to be kept"
	default:
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, d.Record, "", "  "); err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
		text = format.PlainLines(pretty.String())
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
