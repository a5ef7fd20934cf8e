// Package cli is the people's half of the forewarm command: it asks the API of
// a running server and shows the answer.
//
// Its promises to scripts: data goes to standard output and everything else to
// standard error; nothing asks a question unless a person sits at a terminal;
// every failure has an exit code of its own kind and names a command to run
// next; -o json is the API's own JSON.
package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
)

// DefaultServer is where forewarm up listens.
const DefaultServer = "http://127.0.0.1:8787"

// world is what the commands reach outside of their arguments.
type world struct {
	version  string
	getenv   func(string) string
	clock    clock.Clock
	pause    func(context.Context, time.Duration) error // waits between two looks
	terminal func(any) bool                             // whether a person sits behind a stream
}

// app is one run of the command line.
type app struct {
	world
	flags globals
	// planning and asking are set by the commands that make others show what they
	// would do, or explain it.
	planning, asking bool
	question         string                                // what would be done for ever, of a command that asks before
	filter           *filter                               // of --jq; nil for all
	told             func(time.Duration, contract.Problem) // says what is waited for
}

// previewsOnly reports whether a command shows a plan instead of doing something.
func (a *app) previewsOnly() bool { return a.planning || a.flags.dryRun }

// globals are the flags of every command.
type globals struct {
	server, context, output string
	jq                      string
	idempotencyKey          string
	noHeaders, quiet        bool
	noColor, wait           bool
	dryRun, yes             bool
	timeout                 span
}

// Root returns the command tree, to which the caller may add its own commands.
func Root(version string) *cobra.Command {
	return newRoot(world{version: version, getenv: os.Getenv, clock: clock.System{}, pause: sleepContext,
		terminal: isTerminal})
}

func newRoot(w world) *cobra.Command {
	a := &app{world: w}
	root := &cobra.Command{
		Use:   "forewarm",
		Short: "GPUs that are warm before you ask",
		Long:  "Forewarm keeps GPU capacity ready just ahead of need, and shows what that costs.\n\nStart:  forewarm up",
		Args:  noArgs, RunE: showHelp, SilenceErrors: true, SilenceUsage: true, Version: w.version,
		PersistentPreRunE: a.checkFlags,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("forewarm {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = false
	a.bindGlobalFlags(root)
	root.AddGroup(&cobra.Group{ID: "get", Title: "Get GPUs:"}, &cobra.Group{ID: "plan", Title: "Plan ahead:"},
		&cobra.Group{ID: "fleet", Title: "See the fleet:"}, &cobra.Group{ID: "admin", Title: "Administer:"})
	for group, commands := range map[string][]*cobra.Command{
		"get":  {a.newAllocateCommand(), a.newReleaseCommand(), a.newExtendCommand(), a.newAllocationsCommand(), a.newWaitCommand(), a.newExplainCommand()},
		"plan": {a.newReserveCommand(), a.newReservationsCommand(), a.newSchedulesCommand(), a.newCalendarCommand(), a.newPrewarmCommand(), a.newPlanCommand(), a.newApplyCommand()},
		"fleet": {a.newStatusCommand(), a.newPoolsCommand(), a.newSharesCommand(), a.newNodesCommand(), a.newGPUsCommand(), a.newEventsCommand(), a.newDecisionsCommand(), a.newForecastsCommand(),
			a.newReportCommand(), a.newCostsCommand(), a.newRecoveryCommand(), a.newAuditCommand()},
		"admin": {a.newLoginCommand(), a.newWhoamiCommand(), a.newContextsCommand(), a.newKeysCommand(), a.newOrganizationsCommand(), a.newQuotaCommand(), a.newUsersCommand(), a.newAPICommand(), a.newManualCommand(),
			a.newVersionCommand()},
	} {
		for _, c := range commands {
			c.GroupID, c.Aliases = group, countable[c.Name()]
		}
		root.AddCommand(commands...)
	}
	a.installHelp(root)
	a.prepareCommand(root)
	return root
}

func (a *app) bindGlobalFlags(root *cobra.Command) {
	f, g := root.PersistentFlags(), &a.flags
	f.StringVar(&g.server, "server", "", "address of the server (FOREWARM_API; default the context's, else "+
		DefaultServer+")")
	f.StringVar(&g.context, "context", "", "saved context to use (FOREWARM_CONTEXT)")
	f.StringVarP(&g.output, "output", "o", "", "table, wide, json, jsonl, yaml or name (FOREWARM_OUTPUT)")
	f.StringVar(&g.jq, "jq", "", "show what this jq expression makes of the JSON, such as '.[].name'")
	f.BoolVar(&g.noHeaders, "no-headers", false, "tables without their header")
	f.BoolVarP(&g.quiet, "quiet", "q", false, "only data, nothing on standard error but failures")
	f.BoolVar(&g.noColor, "no-color", false, "no colours (NO_COLOR)")
	g.timeout = span(15 * time.Minute)
	f.BoolVarP(&g.dryRun, "dry-run", "n", false, "say what would happen and change nothing")
	f.StringVar(&g.idempotencyKey, "idempotency-key", "", "the same key sent twice has one effect")
	f.BoolVarP(&g.yes, "yes", "y", false, "do not ask before destroying something")
}

// checkFlags refuses what no command could use, before anything is sent.
func (a *app) checkFlags(cmd *cobra.Command, _ []string) error {
	cmd.SetContext(a.withClock(cmd.Context()))
	a.told = func(d time.Duration, why contract.Problem) {
		a.say(cmd, "%s; trying again in %s.", waitsFor(why), formatDuration(d))
	}
	if a.terminal(cmd.ErrOrStderr()) && !a.flags.noColor && a.getenv("NO_COLOR") == "" {
		cmd.Root().Annotations = map[string]string{colours: "yes"}
	}
	if err := a.checkFilter(cmd); err != nil {
		return err
	}
	if a.flags.output == "" {
		a.flags.output = a.getenv("FOREWARM_OUTPUT")
	}
	if a.flags.output == "" {
		a.flags.output = table
	}
	if !knownFormat(a.flags.output) {
		return usageErrorf(cmd.CommandPath()+" --help", "there is no output format %q: want %s", a.flags.output,
			strings.Join(formats, ", "))
	}
	if cmd.Flags().Changed("timeout") && cmd.Flags().Lookup("wait") != nil && !a.flags.wait {
		return usageErrorf(typedLine(cmd)+" --wait", "--timeout is how long --wait waits, which was not given")
	}
	if cmd.Flags().Changed(dryRuns) && cmd.Annotations[dryRuns] == "" {
		return usageErrorf(cmd.CommandPath()+" --help", "%s does not know --%s", cmd.CommandPath(), dryRuns)
	}
	return nil
}

// checkFilter compiles --jq, which is of JSON.
func (a *app) checkFilter(cmd *cobra.Command) (err error) {
	if !cmd.Flags().Changed("jq") {
		return nil
	}
	switch a.flags.output {
	case "":
		a.flags.output = asJSON
	case asJSON, jsonl:
	default:
		return usageErrorf(cmd.CommandPath()+" -o json --jq '"+a.flags.jq+"'", "--jq is of JSON, and not of -o %s",
			a.flags.output)
	}
	a.filter, err = parseFilter(a.flags.jq)
	return err
}

// prepareCommand gives every command below one what all of them have: it honours
// --dry-run, what would change something being held back and shown; and what
// can be waited for has the flags for that.
func (a *app) prepareCommand(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error { return a.showWithheld(cmd, run(cmd, args)) }
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[dryRuns] = "yes"
	if c.Annotations[waits] != "" {
		a.bindWaitFlags(c)
	}
	a.registerCompletions(c)
	c.Example = firstNonEmpty(exampleOf(c.CommandPath()), c.Example)
	for _, sub := range c.Commands() {
		a.prepareCommand(sub)
	}
}

func (a *app) bindWaitFlags(c *cobra.Command) {
	c.Flags().Var(&a.flags.timeout, "timeout", "how long to wait")
	if c.Name() != "wait" {
		c.Flags().BoolVar(&a.flags.wait, "wait", false, "wait until the GPUs are there")
	}
}

// These annotate the commands that know the flags of these names. Who asks a
// command that does not know --dry-run for no change must not get one.
const (
	dryRuns = "dry-run"
	waits   = "wait"
)

// colours annotates the root when a terminal shows them.
const colours = "colours"

// newClient returns the SDK for the chosen server.
func (a *app) newClient() (*client.Client, error) {
	t, err := a.findTarget()
	if err != nil {
		return nil, err
	}
	c, err := client.New(t.Server, t.Key, a.newDoer(time.Minute))
	if err != nil {
		return nil, &Error{Exit: ExitUsage, Message: err.Error(),
			Next: []string{"forewarm status --server " + DefaultServer}}
	}
	return c, nil
}

// patience is how long a busy server is waited for, all in all.
const patience = 30 * time.Second

// newDoer sends requests: again when a busy server asks to wait, and in a dry run
// none that changes something.
func (a *app) newDoer(timeout time.Duration) client.Doer {
	var d client.Doer = httpx.NewClient(httpx.Config{Timeout: timeout, MaxBody: 32 << 20, UserAgent: a.userAgent()})
	if a.flags.dryRun {
		d = dryRunDoer{d}
	}
	return client.Patient{Next: interruptDoer{d}, Wait: a.pause, Limit: patience, Told: a.tellWait}
}

// newStreamClient is a client whose answers do not end.
func (a *app) newStreamClient() (*client.Client, error) {
	t, err := a.findTarget()
	if err != nil {
		return nil, err
	}
	return client.New(t.Server, t.Key, httpx.NewClient(httpx.Config{Timeout: -1, MaxBody: -1, UserAgent: a.userAgent()}))
}

func (a *app) userAgent() string { return "forewarm-cli/" + a.version }

// withIdempotencyKey prepares a context for a request that changes something.
func (a *app) withIdempotencyKey(ctx context.Context) context.Context {
	if a.flags.idempotencyKey == "" {
		return ctx
	}
	return client.WithIdempotencyKey(ctx, a.flags.idempotencyKey)
}

// sleepContext waits for d, or less when the context ends.
func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// isTerminal reports whether a stream is a character device.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
