package jobs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// request is what the flags of run ask for.
type request struct {
	flags *pflag.FlagSet // what was given
	in    contract.JobCreate

	maxRuntime, grace      flags.Span
	retries, retriesLost   int
	env, after             []string
	envFile, input, script string
	array, checkpoint      string
	notBefore, zone        string
	detach                 bool
}

func (r *request) bind(f *pflag.FlagSet) {
	r.flags = f
	f.IntVar(&r.in.GPUs, "gpus", 0, "how many in all (default 1)")
	flags.BindLayout(f, &r.in.Layout)
	f.StringVar(&r.in.Model, "model", "", "GPU model, such as a100")
	f.StringVar(&r.in.Pool, "pool", "", "id or name of a pool (default the one that fits where it can start first)")
	flags.BindNeeds(f, &r.in.Needs)
	f.StringVar(&r.in.Name, "name", "", "what to call it")
	f.StringVar(&r.in.Priority, "priority", "", "low, normal or high (default normal)")
	f.Var(&r.maxRuntime, "max-runtime", "how long it may run; what is short starts earlier, in gaps (default 24h)")
	f.Var(&r.grace, "grace", "how long it has between TERM and KILL (default 30s)")
	f.StringVar(&r.checkpoint, "checkpoint", "", "a signal that it gets before its time is over, and how long before, "+
		"as in USR1@60s")
	f.IntVar(&r.retries, "retries", 0, "how often it is tried again after an exit code other than 0")
	f.IntVar(&r.retriesLost, "retries-lost", defaultLost, "how often it is tried again after the loss of its GPUs")
	f.StringArrayVar(&r.env, "env", nil, "a variable of its environment, as NAME=VALUE; repeat it for more")
	f.StringVar(&r.envFile, "env-file", "", "a file with such variables, one a line")
	f.StringVar(&r.in.Directory, "dir", "", "where it begins (default the job's folder on the node)")
	f.StringVar(&r.input, "input", "", "a file that it reads as its standard input; - is the one of this command")
	f.StringArrayVar(&r.after, "after", nil, "a job that must have completed first; as JOB:afterany be over, as "+
		"JOB:afternotok have failed, as JOB:after have started; repeat it for more")
	f.StringVar(&r.array, "array", "", "make a job of each index of FIRST-LAST or FIRST-LAST:STEP")
	f.StringVar(&r.notBefore, "not-before", "", "it starts no earlier: 'tomorrow 09:00', 'mon 14:30' or 'in 2h'")
	f.StringVar(&r.zone, "tz", "", "time zone of --not-before (default the machine's)")
	f.BoolVar(&r.in.Hold, "hold", false, "it waits until forewarm jobs release")
	f.StringVar(&r.script, "script", "", "run this file of here by its shell, with the flags in its lines #FW and #SBATCH")
	f.BoolVarP(&r.detach, "detach", "d", false, "print its id, and do not wait for it")
}

// defaultLost is how often a job that lost its GPUs is tried again, unless it says so.
const defaultLost = 3

// build is the request for a command.
func (r *request) build(a *app.App, cmd *cobra.Command, command []string) (contract.JobCreate, error) {
	in := r.in
	in.Command = command
	in.MaxRuntimeSeconds, in.GraceSeconds = r.maxRuntime.Seconds(), r.grace.Seconds()
	if r.flags.Changed("retries") || r.flags.Changed("retries-lost") {
		in.Retries = &contract.JobRetries{Failed: r.retries, Lost: r.retriesLost}
	}
	for _, read := range []func() error{
		func() (err error) { in.Checkpoint, err = parseCheckpoint(r.checkpoint); return err },
		func() (err error) { in.Array, err = parseArray(r.array); return err },
		func() (err error) { in.Environment, err = r.readEnvironment(cmd); return err },
		func() (err error) { in.Input, err = r.readInput(cmd); return err },
		func() (err error) { in.NotBefore, err = r.parseStart(a, cmd); return err },
		func() (err error) { in.Dependencies, err = r.findDependencies(a, cmd); return err },
	} {
		if err := read(); err != nil {
			return in, err
		}
	}
	return in, nil
}

func wrongUse(format string, args ...any) error {
	return exit.UsageErrorf("forewarm run --help", format, args...)
}

// parseCheckpoint reads SIGNAL or SIGNAL@DURATION.
func parseCheckpoint(text string) (*contract.JobCheckpoint, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none was asked for
	}
	name, before, timed := strings.Cut(text, "@")
	c := &contract.JobCheckpoint{Signal: strings.TrimPrefix(strings.ToUpper(name), "SIG")}
	if !timed {
		return c, nil
	}
	d, err := strictyaml.ParseDuration(before)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return nil, wrongUse("--checkpoint %s: write a signal and how long before the end it comes, as in USR1@60s", text)
	}
	c.BeforeSeconds = int64(d / time.Second)
	return c, nil
}

// parseArray reads FIRST-LAST, FIRST-LAST:STEP or one index.
func parseArray(text string) (*contract.JobArray, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none was asked for
	}
	span, step, stepped := strings.Cut(text, ":")
	first, last, ranged := strings.Cut(span, "-")
	if !ranged {
		last = first
	}
	var out contract.JobArray
	err := errors.Join(parseIndex(first, &out.First), parseIndex(last, &out.Last))
	if stepped {
		err = errors.Join(err, parseIndex(step, &out.Step))
	}
	if err != nil || stepped && out.Step < 1 || out.Last < out.First {
		return nil, wrongUse("--array %s: write FIRST-LAST or FIRST-LAST:STEP, as in 0-99 or 0-99:10", text)
	}
	return &out, nil
}

func parseIndex(text string, to *int) error {
	n, err := strconv.ParseUint(text, 10, 31)
	*to = int(n) //nolint:gosec // 31 bits
	return err
}

// readEnvironment is what --env-file says, and --env above it.
func (r *request) readEnvironment(cmd *cobra.Command) (map[string]string, error) {
	var lines []string
	if r.envFile != "" {
		text, err := os.ReadFile(r.envFile)
		if err != nil {
			return nil, wrongUse("--env-file: %v", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				lines = append(lines, line)
			}
		}
	}
	out, err := flags.ParseVariables(cmd, "env-file "+r.envFile, lines)
	if err != nil {
		return nil, err
	}
	given, err := flags.ParseVariables(cmd, "env", r.env)
	maps.Copy(out, given)
	if len(out) == 0 {
		return nil, err
	}
	return out, err
}

// mostInput is how many bytes a job may be given as its standard input.
const mostInput = 192 << 10

func (r *request) readInput(cmd *cobra.Command) ([]byte, error) {
	var from io.Reader
	switch r.input {
	case "":
		return r.in.Input, nil
	case "-":
		from = cmd.InOrStdin()
	default:
		file, err := os.Open(r.input)
		if err != nil {
			return nil, wrongUse("--input: %v", err)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, mostInput+1))
	if err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	if len(data) > mostInput {
		return nil, wrongUse("--input %s: it has more than 192KiB: put it into a file that the nodes can read", r.input)
	}
	return data, nil
}

func (r *request) parseStart(a *app.App, cmd *cobra.Command) (time.Time, error) {
	if r.notBefore == "" {
		return time.Time{}, nil
	}
	zone, err := a.Zone(cmd, r.zone)
	if err != nil {
		return time.Time{}, err
	}
	at, err := when.Parse(r.notBefore, a.Clock.Now(), zone)
	return at, when.BlameFlag(cmd, "not-before", err)
}

// conditions are what a job can wait for of another one.
var conditions = []string{"after", "afterok", "afternotok", "afterany"}

// findDependencies reads JOB or JOB:CONDITION, where a job has its id or its name.
func (r *request) findDependencies(a *app.App, cmd *cobra.Command) ([]contract.JobDependency, error) {
	var all []contract.JobDependency
	for _, text := range r.after {
		d := contract.JobDependency{JobID: text}
		for _, c := range conditions {
			if ref, ok := strings.CutSuffix(text, ":"+c); ok {
				d.JobID, d.Condition = ref, c
			}
		}
		_, id, err := names.JobID(a, cmd, d.JobID)
		if err != nil {
			return nil, err
		}
		d.JobID = id
		all = append(all, d)
	}
	return all, nil
}
