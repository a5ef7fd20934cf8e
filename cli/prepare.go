package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/jq"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/contract"
)

func bindGlobalFlags(a *app.App, root *cobra.Command) {
	f, g := root.PersistentFlags(), &a.Flags
	f.StringVar(&g.Server, "server", "", "address of the server (FOREWARM_API; default the context's, else "+
		contextfile.DefaultServer+")")
	f.StringVar(&g.Context, "context", "", "saved context to use (FOREWARM_CONTEXT)")
	f.StringVarP(&g.Output, "output", "o", "", "table, wide, json, jsonl, yaml or name (FOREWARM_OUTPUT)")
	f.StringVar(&g.Jq, "jq", "", "filter the JSON through this jq expression, such as '.[].name'")
	f.BoolVar(&g.NoHeaders, "no-headers", false, "leave out the header of tables")
	f.BoolVarP(&g.Quiet, "quiet", "q", false, "print only data, and only failures on standard error")
	f.BoolVar(&g.NoColor, "no-color", false, "no colours (NO_COLOR)")
	g.Timeout = flags.Span(15 * time.Minute)
	f.BoolVarP(&g.DryRun, "dry-run", "n", false, "show what would happen and change nothing")
	f.StringVar(&g.IdempotencyKey, "idempotency-key", "",
		"a request sent twice with the same key has one effect (nodes join refuses it)")
	f.BoolVarP(&g.Yes, "yes", "y", false, "do not ask before destroying something")
}

// checkLine refuses what no command could use, before anything is sent.
func checkLine(a *app.App, cmd *cobra.Command, args []string) error {
	cmd.SetContext(problem.WithClock(cmd.Context(), a.Clock.Now))
	saidRate := false
	a.OnWait = func(d time.Duration, why contract.Problem) {
		if why.Code != contract.CodeRateLimited {
			a.Say(cmd, "%s; trying again in %s.", app.WaitsFor(why), format.Duration(d))
		} else if !saidRate { // a list of many pages comes to it again and again
			saidRate = true
			a.Say(cmd, "%s; trying again in %s, and so on as often as needed.", app.WaitsFor(why), format.Duration(d))
		}
	}
	a.OnSlow = func(server string) { a.Say(cmd, "%s has not answered yet; still waiting for it.", server) }
	a.OnPlainKey = func(host string) {
		a.Say(cmd, "warning: your key goes to %s unencrypted; use https://", host)
	}
	a.OnEmptyVariable = func(name string) {
		a.Say(cmd, "warning: %s is set and empty, which counts as not set: what was saved is used", name)
	}
	if a.Terminal(cmd.ErrOrStderr()) && !a.Flags.NoColor && a.Getenv("NO_COLOR") == "" {
		cmd.Root().Annotations = map[string]string{colours: "yes"}
	}
	if err := flags.CheckWords(cmd, args); err != nil {
		return err
	}
	if err := checkFilter(a, cmd); err != nil {
		return err
	}
	if a.Flags.Output == "" {
		a.Flags.Output = a.Getenv("FOREWARM_OUTPUT")
	}
	if a.Flags.Output == "" {
		a.Flags.Output = output.Table
	}
	if !output.IsFormat(a.Flags.Output) {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "there is no output format %q: want %s", a.Flags.Output,
			strings.Join(output.Formats, ", "))
	}
	if cmd.Flags().Changed("idempotency-key") && a.Flags.IdempotencyKey == "" {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "--idempotency-key is empty")
	}
	if cmd.Flags().Changed("timeout") && cmd.Flags().Lookup("wait") != nil && !a.Flags.Wait {
		return exit.UsageErrorf(flags.TypedLine(cmd)+" --wait",
			"--timeout is how long --wait waits, which was not given")
	}
	if cmd.Flags().Changed(app.DryRuns) && cmd.Annotations[app.DryRuns] == "" {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "%s does not know --%s", cmd.CommandPath(), app.DryRuns)
	}
	return nil
}

// checkFilter compiles --jq, which is of JSON.
func checkFilter(a *app.App, cmd *cobra.Command) (err error) {
	if !cmd.Flags().Changed("jq") {
		return nil
	}
	switch a.Flags.Output {
	case "":
		a.Flags.Output = output.JSON
	case output.JSON, output.JSONLines:
	default:
		return exit.UsageErrorf(cmd.CommandPath()+" -o json --jq '"+a.Flags.Jq+"'",
			"--jq works on JSON, and not on -o %s",
			a.Flags.Output)
	}
	a.Filter, err = jq.Parse(a.Flags.Jq)
	return err
}

// prepareCommand gives every command below one what all of them have: it honours
// --dry-run, what would change something being held back and shown; and what
// can be waited for has the flags for that.
func prepareCommand(a *app.App, c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error { return showWithheld(a, cmd, run(cmd, args)) }
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[app.DryRuns] = "yes"
	if c.Annotations[app.Waits] != "" {
		bindWaitFlags(a, c)
	}
	registerCompletions(a, c)
	c.Example = cmp.Or(exampleOf(c.CommandPath()), c.Example)
	for _, sub := range c.Commands() {
		prepareCommand(a, sub)
	}
}

func bindWaitFlags(a *app.App, c *cobra.Command) {
	c.Flags().Var(&a.Flags.Timeout, "timeout", "how long to wait")
	if c.Name() != "wait" {
		c.Flags().BoolVar(&a.Flags.Wait, "wait", false, "wait until the GPUs are there")
	}
}
