package jobs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/jobscript"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewRunCommand is the command run.
func NewRunCommand(a *app.App) *cobra.Command {
	r := &request{}
	c := &cobra.Command{
		Use: "run [--gpus N] [--pool P | --model M …] -- COMMAND [ARGUMENT…]", Short: "Run a command on GPUs as soon as " +
			"there are any",
		Long: `Run a command on GPUs as soon as there are any: it is a job, which waits in its pool's queue, gets GPUs of its
own, and gives them back when it ends.

The command says on standard error what the job waits for, then shows what the job writes, and ends with the job's
exit code. On several nodes the job's command runs once on each, and its lines are marked with the node's rank. The job
does not depend on this command: after Ctrl-C, or a connection that is cut, it goes on. A second Ctrl-C within 2s
cancels it. With --detach its id is printed, and forewarm jobs logs -f shows the rest.

With --script, the job runs a file of here by the shell that its first line names (sh if it names none), with the
arguments behind --. The shell gets the text as its input and reads all of it first, so the file need not be on the
nodes. Scripts of other languages have to be there; name their program and the file behind --. Lines at its beginning
with #FW have flags of this command, those with #SBATCH flags of Slurm: job-name, time, nodes, gpus, gpus-per-node,
gpus-per-task, gres=gpu, ntasks, ntasks-per-node, partition (the pool), reservation, constraint, prefer, exclude,
exclusive, array, dependency, chdir, requeue, no-requeue, signal, begin, hold and export of NAME=VALUE. What Slurm does
about output, mail, accounts, memory and processors is left out with a note, and any other flag is refused. #FW counts
before #SBATCH, and the command line before both. Such scripts are submitted by forewarm sbatch, too.`,
		RunE: func(cmd *cobra.Command, args []string) error { return run(a, cmd, r, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	r.bind(c.Flags())
	r.bindScript(c.Flags())
	c.Flags().SetInterspersed(false) // what follows the command is the command's
	return c
}

// run submits a job, and follows it.
func run(a *app.App, cmd *cobra.Command, r *request, args []string) error {
	r, command, err := r.complete(a, cmd, args)
	if err != nil {
		return err
	}
	if r.array != "" && !r.detach && !a.Flags.DryRun {
		return exit.UsageErrorf("forewarm run --detach --array "+r.array+" …",
			"--array makes many jobs, and one command cannot follow them all: add --detach")
	}
	in, err := r.build(a, cmd, command)
	if err != nil {
		return err
	}
	r.tellUnsent(a, cmd)
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	got, err := api.SubmitJob(a.WithIdempotencyKey(cmd.Context()), in, client.Options{DryRun: a.Flags.DryRun})
	switch {
	case err != nil:
		return err
	case a.Flags.DryRun:
		a.Say(cmd, "Dry run: nothing was changed.")
		if err := output.List(a, cmd, ViewAt(a.Clock.Now()), got.Jobs); err != nil || len(got.Jobs) == 0 {
			return err
		}
		sayLimits(a, cmd, got.Jobs[0])
		return nil
	case len(got.Jobs) == 0:
		return fmt.Errorf("the server made no job of the request")
	case r.detach:
		return showSubmitted(a, cmd, got)
	}
	return followToItsEnd(a, cmd, api, got.Jobs[0], r.raw)
}

// sayLimits says what the table of a dry run has no room for. Of an array it is the same of each job.
func sayLimits(a *app.App, cmd *cobra.Command, x contract.Job) {
	a.Say(cmd, "Max runtime %s, grace %s, checkpoint %s", format.Seconds(x.MaxRuntimeSeconds),
		format.Seconds(x.GraceSeconds), checkpointText(x))
	a.Say(cmd, "Retries     %s", retriesText(x))
	a.Say(cmd, "Not before  %s", format.Time(x.NotBefore))
}

// showSubmitted prints the id of what was submitted.
func showSubmitted(a *app.App, cmd *cobra.Command, got contract.JobsSubmitted) error {
	id, item, next := got.Jobs[0].ID, any(got.Jobs[0]), "forewarm jobs logs -f "+got.Jobs[0].ID
	if got.ArrayID != "" {
		id, item, next = got.ArrayID, any(got), "forewarm jobs list --array "+got.ArrayID
	}
	if err := output.Text(a, cmd, id, item, func(w io.Writer) { _, _ = fmt.Fprintln(w, id) }); err != nil {
		return err
	}
	a.Say(cmd, "Submitted %s.\nNext      %s", format.Count(len(got.Jobs), "job"), next)
	return nil
}

// complete is the request with what its script says, and the command.
func (r *request) complete(a *app.App, cmd *cobra.Command, args []string) (*request, []string, error) {
	switch {
	case r.script != "":
		return r.withScript(a, cmd, args)
	case len(args) == 0:
		return r, nil, wrongUse("the command is missing: write it behind --, or name a file with --script")
	}
	return r, args, nil
}

// withScript is the request with the flags that its script has and the command line has not.
func (r *request) withScript(a *app.App, cmd *cobra.Command, args []string) (*request, []string, error) {
	text, err := os.ReadFile(r.script)
	if err != nil {
		return nil, nil, wrongUse("--script: %v", err)
	}
	all, script, err := readScript(a, cmd, r.script, string(text), jobscript.Reader{})
	switch {
	case err != nil:
		return nil, nil, err
	case r.input != "":
		return nil, nil, errScriptInput
	}
	if err := addGiven(all.flags, cmd.Flags()); err != nil {
		return nil, nil, err
	}
	return all, script.Command(filepath.Base(r.script), args), nil
}

// alternatives are flags of the command line that take the place of others in a script. A pool
// takes that of no need: one that lacks what the script asks for is refused.
var alternatives = []struct{ given, replaced []string }{
	{[]string{"gpus", "nodes", "gpus-per-node"}, []string{"gpus", "nodes", "gpus-per-node"}},
	{[]string{"model", "region"}, []string{"pool", "model", "region"}},
}

// addGiven sets flags as they were given on the command line.
func addGiven(to, from *pflag.FlagSet) (err error) {
	for _, a := range alternatives {
		if !slices.ContainsFunc(a.given, from.Changed) {
			continue
		}
		for _, name := range a.replaced {
			f := to.Lookup(name)
			f.Changed = false
			_ = f.Value.Set(f.DefValue) // which it had
		}
	}
	from.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if to.Lookup(f.Name) != nil && err == nil {
				err = to.Set(f.Name, value)
			}
		}
	})
	return err
}

// rewordFlag says what is wrong with a flag as the command line would.
func rewordFlag(cmd *cobra.Command, err error) error { return cmd.FlagErrorFunc()(cmd, err) }
