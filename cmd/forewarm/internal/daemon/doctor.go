package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
)

// verdict is how a look of the doctor ended.
type verdict string

const (
	verdictOK      verdict = "ok"
	verdictWarning verdict = "warning" // it works, and will not for ever or under all circumstances
	verdictFailed  verdict = "failed"
	verdictSkipped verdict = "skipped" // what it needs has failed, or is not used here
)

// finding is what one look has shown.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"result"`
	Message string  `json:"message"`
}

// doctor collects findings. It changes nothing, in no service.
type doctor struct {
	cfg      Config
	version  string
	findings []finding
	shown    func(finding) // is told of each at once
}

func (d *doctor) add(check string, v verdict, format string, args ...any) {
	f := finding{Check: check, Verdict: v, Message: fmt.Sprintf(format, args...)}
	d.findings = append(d.findings, f)
	d.shown(f)
}

// addDoubts adds a warning each.
func (d *doctor) addDoubts(check string, doubts []string) {
	for _, doubt := range doubts {
		d.add(check, verdictWarning, "%s", doubt)
	}
}

func (d *doctor) count(v verdict) (n int) {
	for _, f := range d.findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

func doctorCommand(version string) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look at configuration, database, Redis, provisioners and workers, and say what is wrong",
		Args: cobra.NoArgs,
		Long: "Looks at everything that a server and a worker with this configuration need, and says what is wrong and\n" +
			"how to mend it. It changes nothing, and may run beside them. Run it on their machine, with their\n" +
			"environment. It fails if something does not work; warnings alone do not make it fail.",
		Example: "forewarm doctor\nforewarm doctor --config /etc/forewarm/forewarm.yaml -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := "table"
			if set := cmd.Flag("output"); set != nil {
				format = set.Value.String()
			}
			return runDoctor(cmd.Context(), &f, version, cmd.OutOrStdout(), format)
		},
	}
	f.addFlags(cmd)
	return cmd
}

// runDoctor prints each finding as it comes, or all of them as one JSON document.
func runDoctor(ctx context.Context, f *flags, version string, out io.Writer, format string) error {
	if format != "table" && format != "json" {
		return exit.UsageErrorf("forewarm doctor -o json", "doctor has no output format %q: use table or json", format)
	}
	d := &doctor{version: version, shown: func(one finding) { writeFinding(out, one) }}
	if format == "json" {
		d.shown = func(finding) {}
	}
	d.examineAll(ctx, f)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if format == "json" {
		text := json.NewEncoder(out)
		text.SetIndent("", "  ")
		if err := text.Encode(d.findings); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	if failed := d.count(verdictFailed); failed > 0 {
		return &exit.Error{Code: exit.Failed, Message: fmt.Sprintf("%d of %d looks failed", failed, len(d.findings))}
	}
	return nil
}

// writeFinding writes a line, and one below it for each further one of the message.
func writeFinding(out io.Writer, f finding) {
	name := fmt.Sprintf("%-8s %-13s ", f.Verdict, f.Check)
	for line := range strings.Lines(strings.TrimSpace(f.Message)) {
		_, _ = fmt.Fprintln(out, name+strings.TrimSpace(line))
		name = strings.Repeat(" ", len(name))
	}
}
