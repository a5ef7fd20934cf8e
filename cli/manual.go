package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
)

func newManualCommand(a *app.App) *cobra.Command {
	var markdown string
	c := &cobra.Command{
		Use: "man (DIR | --markdown FILE)", Short: "Write the manual pages of all commands",
		Example: "  forewarm man ./man",
		Args: func(cmd *cobra.Command, args []string) error {
			if markdown != "" {
				return flags.NoArgs(cmd, args)
			}
			if len(args) == 0 {
				return exit.UsageErrorf("forewarm man ./man", "DIR is missing: the directory to write the pages to")
			}
			return flags.ExactArgs("DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case a.Flags.DryRun:
				a.Say(cmd, "Dry run: nothing was written.")
				return nil
			case markdown != "":
				var b bytes.Buffer
				writeReference(&b, cmd.Root())
				return manualError(os.WriteFile(markdown, b.Bytes(), 0o644)) //nolint:gosec // for everybody to read
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // for everybody to read
				return manualError(err)
			}
			header := &doc.GenManHeader{Title: "FOREWARM", Section: "1", Source: "forewarm " + a.Version,
				Manual: "Forewarm"}
			return manualError(doc.GenManTree(cmd.Root(), header, args[0]))
		},
	}
	c.Flags().StringVar(&markdown, "markdown", "", "write the reference of all commands to this `FILE` instead")
	return c
}

func manualError(err error) error {
	if err == nil {
		return nil
	}
	return &exit.Error{Code: exit.Failed, Message: "writing the manual: " + err.Error(),
		Next: []string{"forewarm man --help"}, Err: err}
}

// writeReference writes what --help says of every command, as one page.
func writeReference(w io.Writer, root *cobra.Command) {
	_, _ = fmt.Fprint(w, "<!-- Written by make gen from the commands themselves. -->\n\n# The command line\n\n"+
		"Data goes to standard output, everything else to standard error. Every argument that takes an id also takes a\n"+
		"name. Commands ask questions only at a terminal.\n\n"+
		"The server is `--server`, else that of `--context`, else `FOREWARM_API`, else that of `FOREWARM_CONTEXT`,\n"+
		"else that of the context in use. The key is `FOREWARM_API_KEY`, else the content of the file\n"+
		"`FOREWARM_API_KEY_FILE`, else the context's key. A variable that is set and empty counts as\n"+
		"not set, which a warning says. A context's key goes to that context's own server only: a context named together\n"+
		"with another server is refused unless the environment has a key.\n")
	for _, g := range root.Groups() {
		_, _ = fmt.Fprintf(w, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				writeCommand(w, c)
			}
		}
	}
	_, _ = fmt.Fprintf(w, "\n## Flags of every command\n\n```text\n%s```\n\n## Exit codes\n\n```text\n",
		flagsOfAll(root))
	exit.WriteMeanings(w)
	_, _ = fmt.Fprint(w, "```\n")
}

func writeCommand(w io.Writer, c *cobra.Command) {
	if c.Hidden {
		return
	}
	_, _ = fmt.Fprintf(w, "\n### %s\n\n%s.\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
	if c.Long != "" && c.Long != c.Short {
		_, _ = fmt.Fprintf(w, "\n```text\n%s\n```\n", c.Long)
	}
	_, _ = fmt.Fprintf(w, "\n```text\n%s\n", c.UseLine())
	if flags := ownFlags(c); flags != "" {
		_, _ = fmt.Fprintf(w, "\n%s\n", flags)
	}
	_, _ = fmt.Fprint(w, "```\n")
	if c.Example != "" {
		_, _ = fmt.Fprintf(w, "\n```console\n%s\n```\n", strings.Join(exampleBlock(c), "\n"))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			writeCommand(w, sub)
		}
	}
}

// exampleBlock are the command lines of a command's examples.
func exampleBlock(c *cobra.Command) []string {
	var lines []string
	for l := range strings.Lines(c.Example) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, "$ "+l)
		}
	}
	return slices.Clip(lines)
}
