package jobs

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// request is what the flags of run ask for.
type request struct {
	flags *pflag.FlagSet // what was given
	in    contract.JobCreate

	maxRuntime, grace      flags.Span
	retries, retriesLost   int
	env, after, volumes    []string
	files, secrets         []string
	envFile, input, script string
	array, checkpoint      string
	reservation            string
	notBefore, zone        string
	preemptible            bool
	exclusive              bool
	detach, raw            bool
}

func (r *request) bind(f *pflag.FlagSet) {
	r.flags = f
	f.IntVar(&r.in.GPUs, "gpus", 0, "how many in all (default 1, or one on each of --nodes)")
	flags.BindLayout(f, &r.in.Layout)
	f.BoolVar(&r.exclusive, "exclusive", false, "all GPUs of each of its nodes, so that nobody else is there; name a pool")
	f.StringVar(&r.in.Model, "model", "", "GPU model, such as a100")
	f.StringVar(&r.in.Pool, "pool", "", "id or name of a pool (default the one that fits where it can start first)")
	flags.BindNeeds(f, &r.in.Needs)
	f.StringVar(&r.in.Name, "name", "", "what to call it")
	f.StringVar(&r.in.Priority, "priority", "", "priority class: low, normal or high (default normal), or as "+
		"your site names them")
	f.StringVar(&r.in.Workload, "workload", "", "online or batch: a pool may keep a share for each (default batch)")
	f.Var(&r.maxRuntime, "max-runtime", "how long it may run; what is short starts earlier, in gaps (default 24h)")
	f.Var(&r.grace, "grace", "how long it has between TERM and KILL (default 30s)")
	f.StringVar(&r.checkpoint, "checkpoint", "", "a signal that it gets before its time is over, and how long before, "+
		"as in USR1@60s; as in B:USR1@60s its first process alone gets it, else its whole process group")
	f.BoolVar(&r.preemptible, "preemptible", false, "it may be told to leave for jobs that go before it, and comes back "+
		"with its place in the queue")
	f.IntVar(&r.retries, "retries", 0, "how often it is tried again after an exit code other than 0")
	f.IntVar(&r.retriesLost, "retries-lost", defaultLost, "how often it is tried again after the loss of its GPUs")
	f.StringArrayVar(&r.env, "env", nil, "a variable of its environment, as NAME=VALUE; repeat it for more")
	f.StringVar(&r.envFile, "env-file", "", "a file with such variables, one a line")
	f.StringVar(&r.in.Image, "image", "", "run it in a container of this image, such as docker.io/pytorch/pytorch:2.4.1")
	f.StringArrayVarP(&r.volumes, "volume", "v", nil, "a folder of the nodes that their operator allows, for the "+
		"container, as FOLDER, FOLDER:ro or FOLDER:TARGET:ro; repeat it for more")
	f.StringArrayVarP(&r.in.Constraints, "constraint", "C", nil, "what labels its nodes must have: disk=nvme, disk, "+
		"!disk, disk!=hdd, 'disk in (nvme,ssd)' or 'disk notin (hdd)'; repeat it for more")
	f.StringArrayVar(&r.in.Prefers, "prefer", nil, "the same of labels: nodes that are so come first; repeat it for "+
		"more")
	f.StringArrayVar(&r.in.Near, "near", nil, "a job or an array: nodes where it runs come first, then those near them; "+
		"repeat it for more")
	f.StringArrayVar(&r.in.ApartFrom, "apart-from", nil, "a job, the name of some, or an array: it shares no node with "+
		"these; repeat it for more")
	f.StringArrayVar(&r.in.Tolerations, "tolerate", nil, "a taint that does not keep it away; repeat it for more")
	f.StringArrayVar(&r.in.ExcludedNodes, "exclude", nil, "nodes on which it does not run, by their ids, as in "+
		"NODE,NODE; repeat it for more")
	f.StringVar(&r.in.Directory, "dir", "", "where it begins (default the job's folder on the node)")
	f.BoolVar(&r.in.Slurm, "slurm-env", false, "give it variables of Slurm, such as SLURM_ARRAY_TASK_ID; a script with "+
		"lines #SBATCH has them")
	f.StringVar(&r.input, "input", "", "a file that it reads as its standard input; - is the one of this command")
	f.StringArrayVar(&r.files, "file", nil, "a file or folder that it finds where it begins, as PATH or NAME=PATH; "+
		"repeat it for more")
	f.StringArrayVar(&r.secrets, "secret", nil, "a file that it alone reads, as NAME=PATH: its variable NAME_FILE has "+
		"where it is; repeat it for more")
	f.StringArrayVar(&r.after, "after", nil, "a job that must have completed first, or an array whose jobs must, by id "+
		"or name; as JOB:afterany be over, as JOB:afternotok have failed, as JOB:after have started, as ARRAY:aftercorr "+
		"the job of the same index; repeat it for more")
	f.StringVar(&r.array, "array", "", "make a job of each index, as in 0-99 or 0-98:2,150; behind % how many run at "+
		"once, as in 0-99%4")
	f.StringVar(&r.reservation, "reservation", "", "id or name of what you reserved: it starts when that begins, on all "+
		"GPUs of it, and has to be over when that ends")
	f.StringVar(&r.notBefore, "not-before", "", "it starts no earlier: 'tomorrow 09:00', 'mon 14:30' or 'in 2h'")
	f.StringVar(&r.zone, "tz", "", "time zone of --not-before (default the machine's)")
	f.BoolVar(&r.in.Hold, "hold", false, "it waits until forewarm jobs release")
	f.BoolVar(&r.raw, "raw", false, rawHelp)
	f.BoolVarP(&r.detach, "detach", "d", false, "print its id, and do not wait for it")
}

// bindScript is for commands that are told of a script by a flag.
func (r *request) bindScript(f *pflag.FlagSet) {
	f.StringVar(&r.script, "script", "", "run this file of here by its shell, with the flags in its lines #FW and #SBATCH")
}

// rawHelp is what --raw is for.
const rawHelp = "write output to a terminal as it is: colours and carriage returns go there in any case"

// defaultLost is how often a job that lost its GPUs is tried again, unless it says so.
const defaultLost = 3

// splitNodes takes lists of nodes apart, as Slurm writes them. Ids have no numbers that could make a range.
func splitNodes(lists []string) (all []string, err error) {
	for _, list := range lists {
		if strings.ContainsAny(list, "[]") {
			return nil, wrongUse("--exclude %s: nodes are named one by one, by their ids, with commas between them: "+
				"forewarm nodes list", list)
		}
		for id := range strings.SplitSeq(list, ",") {
			if id = strings.TrimSpace(id); id != "" {
				all = append(all, id)
			}
		}
	}
	return all, nil
}

// build is the request for a command.
func (r *request) build(a *app.App, cmd *cobra.Command, command []string) (in contract.JobCreate, err error) {
	in = r.in
	if r.flags.Changed("gpus") && in.GPUs < 1 {
		return in, wrongUse("--gpus %d: a job has at least one GPU", in.GPUs)
	}
	if in.GPUs > 0 && in.GPUs < in.GPUsPerNode {
		return in, wrongUse("--gpus %d: one node of --gpus-per-node %d has more", in.GPUs, in.GPUsPerNode)
	}
	if in.ExcludedNodes, err = splitNodes(in.ExcludedNodes); err != nil {
		return in, err
	}
	in.Command = command
	in.MaxRuntimeSeconds, in.GraceSeconds = r.maxRuntime.Seconds(), r.grace.Seconds()
	if r.flags.Changed("retries") || r.flags.Changed("retries-lost") {
		in.Retries = &contract.JobRetries{Failed: r.retries, Lost: r.retriesLost}
	}
	if r.flags.Changed("preemptible") {
		in.Preemptible = &r.preemptible
	}
	for _, read := range []func() error{
		func() (err error) { in.Checkpoint, err = parseCheckpoint(r.checkpoint); return err },
		func() (err error) { in.Array, err = parseArray(r.array); return err },
		func() (err error) { in.Environment, err = r.readEnvironment(cmd); return err },
		func() (err error) { in.Input, err = r.readInput(cmd); return err },
		func() (err error) { in.Mounts, err = parseVolumes(r.volumes); return err },
		func() (err error) { in.NotBefore, err = r.parseStart(a, cmd); return err },
		func() (err error) { in.ReservationID, err = r.findReservation(a, cmd); return err },
		func() (err error) { in.Dependencies, err = r.findDependencies(a, cmd); return err },
		func() error { return r.takeWholeNodes(a, cmd, &in) },
	} {
		if err := read(); err != nil {
			return in, err
		}
	}
	return r.addFiles(in)
}

// helpOfRun is where to read of what run takes.
const helpOfRun = "forewarm run --help"

func wrongUse(format string, args ...any) error {
	return exit.UsageErrorf(helpOfRun, format, args...)
}

// parseCheckpoint reads SIGNAL or SIGNAL@DURATION; behind B:, as in Slurm, the signal is for the first process alone.
func parseCheckpoint(text string) (*contract.JobCheckpoint, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none was asked for
	}
	name, before, timed := strings.Cut(text, "@")
	name, leaderOnly := strings.CutPrefix(strings.ToUpper(name), "B:")
	c := &contract.JobCheckpoint{Signal: strings.TrimPrefix(name, "SIG"), LeaderOnly: leaderOnly}
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
const mostInput = client.MostJobInput

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
