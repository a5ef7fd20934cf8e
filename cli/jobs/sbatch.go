package jobs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

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

// batch is a submission as sbatch makes it.
type batch struct {
	app   *app.App
	cmd   *cobra.Command
	given []jobscript.Flag // in their order
	jobscript.Submission
	request *request
}

// NewSbatchCommand is the command sbatch.
func NewSbatchCommand(a *app.App) *cobra.Command {
	b := &batch{app: a}
	c := &cobra.Command{
		Use: "sbatch [FLAG…] SCRIPT [ARGUMENT…]", Short: "Submit a script of Slurm, with the flags of sbatch",
		Long: `Submit a script of Slurm as it is: a job, which waits in its pool's queue, gets GPUs of its own, and gives them
back when it ends. Flags are those of Slurm's sbatch, here and in lines #SBATCH of the script, and count as they
do there; lines #FW have flags of forewarm run for what Slurm has none for. What Slurm has and Forewarm has not
is left out with a note where it changes nothing, and refused by its name where it would: docs/jobs.md has a
table of all flags. Without SCRIPT, or with -, the script is read from standard input. Variables SBATCH_… are
not read.

The script runs once on each node of the job, not on the first alone. In it, srun starts the tasks of its own
node.

Its output is kept by Forewarm (forewarm jobs logs JOB). With --wait this command writes it where --output and
--error say as well, here and not on the nodes: %j, %A, %a, %x, %u, %n, %N and %% stand for the job, its array,
its index there, its name, who you are, the rank of a node, "node" with that rank, and %. It ends with the job's
exit code, or with the highest of an array's.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			b.cmd = cmd
			return b.submit(args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	b.bind(c.Flags())
	c.Flags().SetInterspersed(false) // what follows the script is the script's
	return c
}

// bind has all flags of sbatch. Forewarm's own that sbatch has under another meaning are not to be had here; that of
// dry runs has no short name.
func (b *batch) bind(f *pflag.FlagSet) {
	f.BoolVar(&b.app.Flags.DryRun, app.DryRuns, false, "show what would happen and change nothing")
	for _, known := range jobscript.Flags() {
		flag := f.VarPF(&sbatchValue{batch: b, of: known}, known.Long, known.Short, known.Usage)
		if known.Optional || known.Bare {
			flag.NoOptDefVal = noValue
		}
		flag.Hidden = known.Usage == ""
	}
}

// noValue is what a flag has whose value was left out.
const noValue = "true"

// sbatchValue collects a flag of the command line.
type sbatchValue struct {
	batch *batch
	of    jobscript.FlagKind
	text  string // that was given last
}

// Set takes a value.
func (v *sbatchValue) Set(text string) error {
	if v.of.Bare && text != noValue {
		return fmt.Errorf("--%s takes no value", v.of.Long)
	}
	if (v.of.Bare || v.of.Optional) && text == noValue {
		text = ""
	}
	v.text = text
	v.batch.given = append(v.batch.given, jobscript.Flag{Long: v.of.Long, Value: text})
	return nil
}

// String is what it was given.
func (v *sbatchValue) String() string { return v.text }

// Type names its value in help texts.
func (v *sbatchValue) Type() string {
	if v.of.Bare {
		return "bool"
	}
	return "string"
}

// submit submits the script, and waits for its end if that is wanted.
func (b *batch) submit(args []string) error {
	in, err := b.read(args)
	if err != nil {
		return tellAsSlurm(b.cmd, err)
	}
	api, err := b.app.NewClient()
	if err != nil {
		return err
	}
	asked := b.app.Flags.DryRun || b.TestOnly
	got, err := api.SubmitJob(b.app.WithIdempotencyKey(b.cmd.Context()), in, client.Options{DryRun: asked})
	switch {
	case err != nil:
		return err
	case len(got.Jobs) == 0:
		return fmt.Errorf("the server made no job of the request")
	case asked:
		return b.tellStart(got.Jobs)
	}
	if err := b.show(got); err != nil || !b.Wait {
		return err
	}
	return b.await(api, got)
}

// read is the request that the script and the command line make.
func (b *batch) read(args []string) (in contract.JobCreate, err error) {
	name, text, err := b.readText(args)
	if err != nil {
		return in, err
	}
	all, script, err := readScript(b.app, b.cmd, name, text, jobscript.Reader{Sbatch: true, Given: b.given})
	if err != nil {
		return in, err
	}
	b.Submission, b.request = script.Submission, all
	b.app.Flags.Quiet = b.app.Flags.Quiet || b.Quiet
	if all.in.Name == "" {
		all.in.Name = nameOfScript(name)
	}
	if !b.Wait && !b.TestOnly && b.Output+b.Error != "" {
		b.app.Say(b.cmd, "Note      --output, --error: without --wait nobody is here to write files; output is kept, and "+
			"forewarm jobs logs JOB shows it")
	}
	if err := b.checkFiles(); err != nil {
		return in, err
	}
	return all.build(b.app, b.cmd, script.Command(filepath.Base(name), args[min(len(args), 1):]))
}

// readText reads the script and tells its name.
func (b *batch) readText(args []string) (name, text string, err error) {
	for _, g := range b.given {
		if g.Long == "wrap" {
			if len(args) > 0 {
				return "", "", wrongUseOf(b.cmd, "--wrap: there can be no script beside it: %s", args[0])
			}
			return "wrap", "#!/bin/sh\n" + g.Value + "\n", nil
		}
	}
	var data []byte
	if len(args) == 0 || args[0] == "-" {
		name = "sbatch"
		data, err = io.ReadAll(io.LimitReader(b.cmd.InOrStdin(), jobscript.Most+1))
	} else {
		name = args[0]
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return "", "", wrongUseOf(b.cmd, "reading the script: %v", err)
	}
	return name, string(data), nil
}

// unusual are the characters that names of jobs have none of.
var unusual = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// mostName is how long a name may be.
const mostName = 63

// nameOfScript is what a job is called that its script does not name, as Slurm does.
func nameOfScript(path string) string {
	name := strings.Trim(unusual.ReplaceAllString(filepath.Base(path), "-"), "-._")
	for _, id := range []string{"job", "arr"} { // with which ids begin, and no name
		if rest, is := strings.CutPrefix(name, id+"_"); is {
			name = id + "-" + rest
		}
	}
	return name[:min(len(name), mostName)]
}

// show says what was submitted, as sbatch does.
func (b *batch) show(got contract.JobsSubmitted) error {
	id, item := got.Jobs[0].ID, any(got.Jobs[0])
	if got.ArrayID != "" {
		id, item = got.ArrayID, got
	}
	if b.Quiet && !b.Parsable {
		return nil
	}
	return output.Text(b.app, b.cmd, id, item, func(w io.Writer) {
		if b.Parsable {
			_, _ = fmt.Fprintln(w, id)
		} else {
			_, _ = fmt.Fprintln(w, "Submitted batch job "+id)
		}
	})
}

// tellStart says when what was not submitted would start.
func (b *batch) tellStart(jobs []contract.Job) error {
	x, now, said := jobs[0], b.app.Clock.Now(), "Nothing was submitted. "
	if b.app.Flags.DryRun {
		b.app.Say(b.cmd, "Dry run: nothing was changed.")
		said = ""
	}
	return output.Text(b.app, b.cmd, "", x, func(w io.Writer) {
		start := predictedStart(x, now)
		if x.State == contract.JobHeld {
			start = "when it is released"
		} else if start == "-" {
			start = "unknown: " + format.OrDash(reasonText(x))
		}
		_, _ = fmt.Fprintf(w, "%s%s of %s on %s would start: %s\n", said, format.Count(len(jobs), "job"),
			format.Count(x.GPUs, "GPU"), format.Count(x.Nodes, "node"), start)
	})
}

// await waits for the end of what was submitted, writes what it writes, and ends with its exit code.
func (b *batch) await(api *client.Client, got contract.JobsSubmitted) error {
	worst := error(nil)
	for _, x := range got.Jobs {
		err := b.follow(api, x, len(got.Jobs) > 1)
		if b.cmd.Context().Err() != nil {
			return err
		}
		if code(err) > code(worst) {
			worst = err
		}
	}
	return worst
}

// code is what a failure has a command end with.
func code(err error) int {
	if e, ok := err.(*exit.Error); ok { //nolint:errorlint // what an end was told as
		return e.Code
	}
	if err != nil {
		return exit.Failed
	}
	return exit.OK
}

// follow waits for the end of one job, and writes what it writes.
func (b *batch) follow(api *client.Client, x contract.Job, silent bool) error {
	files, err := b.newFiles(x)
	if err != nil {
		return err
	}
	defer files.close()
	f, err := newFollower(b.app, b.cmd, api, allRanks(x), true)
	if err != nil {
		return err
	}
	f.out.files, f.silent = files, silent
	f.out.many = f.out.many && !files.perNode()
	ended, err := f.follow(b.cmd.Context(), x)
	switch {
	case b.cmd.Context().Err() != nil:
		return f.leave(x.ID)
	case err != nil:
		return err
	}
	return f.tellEnd(ended)
}
