package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
)

// Text shows one thing that is told in sentences, not in columns.
func Text(a *app.App, cmd *cobra.Command, id string, item any, text func(io.Writer)) error {
	w := cmd.OutOrStdout()
	switch a.Flags.Output {
	case JSON, YAML:
		return WriteEncoded(a, w, item)
	case JSONLines:
		return writeLine(a, w, item)
	case Name:
		if id == "" { // a request that was only asked about
			return nil
		}
		_, err := fmt.Fprintln(w, id)
		return err
	}
	var b strings.Builder
	text(&b)
	if _, err := io.WriteString(w, format.PlainLines(b.String())); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
