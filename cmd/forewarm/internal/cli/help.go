package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage is cobra's own text with a command's own flags and without those that
// every command has.
const usage = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

More:{{range $cmds}}{{if (and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help") .IsAdditionalHelpTopicCommand))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{with ownFlags .}}

Flags:
{{.}}{{end}}

Flags of every command, such as -o json and -n: {{.Root.Name}} options{{if .HasAvailableSubCommands}}
More about a command: {{.CommandPath}} [command] --help{{end}}
`

// ownFlagsKnown tells cobra, whose templates are the whole process's, of
// ownFlags.
var ownFlagsKnown = sync.OnceFunc(func() { cobra.AddTemplateFunc("ownFlags", ownFlags) })

// usages is the text of cobra's help with what forewarm means by it.
func (a *app) usages(root *cobra.Command) {
	ownFlagsKnown()
	root.SetUsageTemplate(usage)
	root.AddCommand(a.options(), exitCodes())
}

// ownFlags describes the flags that a command does not share with all others.
func ownFlags(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	own := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	own.SortFlags = true
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			own.AddFlag(f)
		}
	})
	return strings.TrimRight(own.FlagUsages(), "\n")
}

func (a *app) options() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags that every command has", Args: noArgs, Example: "  forewarm options",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), "Every command has these flags:\n\n", cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

// exitMeanings document the exit codes, for people and in the reference.
var exitMeanings = []struct {
	code int
	text string
}{
	{ExitOK, "done"},
	{ExitFailed, "it failed, the server could not be reached, or the question was answered with no"},
	{ExitUsage, "the command, or a value in it, is wrong"},
	{ExitLogin, "there is no valid key: forewarm login"},
	{ExitNotFound, "there is no such thing, or the key may not see it"},
	{ExitConflict, "its state, or somebody else's change, does not allow it"},
	{ExitPolicy, "a quota, a budget, a cap or the key's role does not allow it"},
	{ExitNoCapacity, "there is no room now; later there may be"},
	{ExitTimeout, "--timeout is over; what was waited for goes on"},
	{ExitWaitFailed, "what was waited for failed"},
	{ExitInterrupt, "interrupted by Ctrl-C; up, server and worker then stop cleanly, with 0"},
	{ExitTerminated, "ended by SIGTERM"},
}

func exitCodes() *cobra.Command {
	var b strings.Builder
	writeExitCodes(&b)
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: "Scripts can choose by the exit code:\n\n" + strings.TrimRight(b.String(), "\n")}
}

func writeExitCodes(w io.Writer) {
	for _, e := range exitMeanings {
		_, _ = fmt.Fprintf(w, "%5d  %s\n", e.code, e.text)
	}
}
