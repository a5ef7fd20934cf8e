package cli

import (
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
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

More:{{range $cmds}}{{if (and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help") ` +
	`.IsAdditionalHelpTopicCommand))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{with ownFlags .}}

Flags:
{{.}}{{end}}

Flags of every command, such as {{with index .Annotations "dry-run"}}-o json and -n{{else}}-q{{end}}: ` +
	`{{.Root.Name}} options{{if .HasAvailableSubCommands}}
More about a command: {{.CommandPath}} [command] --help{{end}}
`

// ownFlagsKnown tells cobra, whose templates are the whole process's, of
// ownFlags.
var ownFlagsKnown = sync.OnceFunc(func() { cobra.AddTemplateFunc("ownFlags", ownFlags) })

// installHelp is the text of cobra's help with what forewarm means by it.
func installHelp(a *app.App, root *cobra.Command) {
	ownFlagsKnown()
	root.SetUsageTemplate(usage)
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(newOptionsCommand(a), newExitCodesCommand())
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

// newHelpCommand is cobra's help command that fails when there is no such command.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command", Example: "  forewarm help pools create",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range about.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if err := flags.NoArgs(about, rest); err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// withoutDryRun names the commands below one that do not know --dry-run.
func withoutDryRun(c *cobra.Command) (names []string) {
	if c.Runnable() && !c.HasSubCommands() && c.Annotations[app.DryRuns] == "" && ownCommand(c) {
		names = append(names, strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "))
	}
	for _, sub := range c.Commands() {
		names = append(names, withoutDryRun(sub)...)
	}
	return names
}

// ownCommand reports whether a command does something of forewarm's.
func ownCommand(c *cobra.Command) bool {
	path := strings.Fields(c.CommandPath())
	return len(path) > 1 && path[1] != "help" && path[1] != "completion" && path[1] != cobra.ShellCompRequestCmd &&
		path[1] != cobra.ShellCompNoDescRequestCmd
}

// flagsOfAll says which flags every command has, and which have not all of them.
func flagsOfAll(root *cobra.Command) string {
	text := "Every command has these flags"
	if names := withoutDryRun(root); len(names) > 0 {
		text += ", except that commands that set up or run the control plane have no --dry-run (" +
			strings.Join(names, ", ") +
			")"
	}
	return text + ":\n\n" + root.PersistentFlags().FlagUsages()
}

func newOptionsCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags that every command has", Args: flags.NoArgs,
		Example: "  forewarm options",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), flagsOfAll(cmd.Root()))
			return err
		},
	}
}

func newExitCodesCommand() *cobra.Command {
	var b strings.Builder
	exit.WriteMeanings(&b)
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean",
		Long: "Scripts can choose by the exit code:\n\n" + strings.TrimRight(b.String(), "\n")}
}
