package decisions

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/plan"
)

// replayed is what became of computing a decision again.
type replayed struct {
	ID         string `json:"id"`
	Identical  bool   `json:"identical"`
	Difference string `json:"difference,omitempty"`
}

func newReplayCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "replay DECISION", Short: "Recompute a decision on this machine from its record, and compare the bytes",
		Args: flags.ExactArgs("DECISION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := fetchDecision(a, cmd, args[0])
			if err != nil {
				return err
			}
			if err := checkReplayable(d); err != nil {
				return err
			}
			x := replayed{ID: d.ID}
			if x.Difference, err = recomputeDecision(d.Engine, d.Record); err != nil {
				return &exit.Error{Code: exit.Failed, Message: d.ID + " cannot be recomputed: " + err.Error(),
					Next: []string{"forewarm decisions show " + d.ID}, Err: err}
			}
			x.Identical = x.Difference == ""
			return showReplay(a, cmd, x)
		},
	}
}

// checkReplayable says why a record is not there to be computed again.
func checkReplayable(d contract.Decision) error {
	switch {
	case d.Redacted:
		return &exit.Error{Code: exit.Policy,
			Message: d.ID + " includes the work of others: an operator can recompute it",
			Next:    []string{"forewarm decisions show " + d.ID}}
	case len(d.Record) == 0:
		return &exit.Error{Code: exit.Failed, Message: d.ID + " has no record: the record was too long to keep",
			Next: []string{"forewarm decisions show " + d.ID}}
	default:
		return nil
	}
}

func showReplay(a *app.App, cmd *cobra.Command, x replayed) error {
	err := output.Text(a, cmd, x.ID, x, func(w io.Writer) {
		if x.Identical {
			_, _ = fmt.Fprintln(w, "identical")
		} else {
			_, _ = fmt.Fprintln(w, format.Plain(x.Difference))
		}
	})
	if err != nil || x.Identical {
		return err
	}
	return &exit.Error{Code: exit.Failed, Message: x.ID + " gives another result when recomputed",
		Next: []string{"forewarm decisions show " + x.ID}}
}

// recomputeDecision makes a decision again and says what differs, down to the bytes of
// its record; nothing if it is identical.
func recomputeDecision(engine string, record []byte) (string, error) {
	switch engine {
	case "admission":
		return recomputeRecord(record, admission.DecodeRecord,
			func(r admission.Record) ([]byte, error) { return r.Encode() },
			admission.Replay)
	case "plan":
		return recomputeRecord(record, plan.DecodeRecord, plan.Record.Encode, plan.Replay)
	default:
		return "", fmt.Errorf("this program has no engine %q", engine)
	}
}

func recomputeRecord[R any](stored []byte, decode func([]byte) (R, error), encode func(R) ([]byte, error),
	replay func(R) (bool, string)) (string, error) {
	r, err := decode(stored)
	if err != nil {
		return "", err
	}
	if same, diff := replay(r); !same {
		return diff, nil
	}
	text, err := encode(r)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(text, stored) {
		return "the record is not in the form in which it is written", nil
	}
	return "", nil
}
