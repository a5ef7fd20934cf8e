package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/core/coldstart"
	"github.com/forewarm/forewarm/core/money"
)

// day is what histories are asked for in.
const day = 24 * time.Hour

// reportFlags are what the command line says.
type reportFlags struct {
	reach                    reach
	file, zone, ownUser      string
	last, learn              flags.Span
	suspend, bootLimit, boot flags.Span
	waitWorth                float64
	keepAlives               []string
	staysUp                  string
}

func newReportCommand(a *app.App) *cobra.Command {
	var r reportFlags
	c := &cobra.Command{
		Use: "report", Short: "See how many GPU jobs waited for a node to boot, and what warm nodes would have cost",
		Args: flags.NoArgs,
		Long: `Reads the jobs of a Slurm cluster from sacct, or from a file, and computes everything on this machine:
nothing leaves it, and no name of a user is shown. To save a file, as a user who may see everybody's jobs:

  ` + wrapCommand(sacctLine) + `

sacct does not say when a node had power. A node that nothing ran on for longer than SuspendTime before a job could
start is taken to have had none. The report says what else is assumed.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(a, cmd) },
	}
	r.bind(c)
	return c
}

// wrapCommand breaks a command line as a shell reads it.
func wrapCommand(line string) string {
	return strings.NewReplacer(" --starttime", " \\\n    --starttime", " > ", " \\\n    > ").Replace(line)
}

func (r *reportFlags) bind(c *cobra.Command) {
	r.reach.bind(c)
	r.last, r.learn = flags.Span(7*day), flags.Span(28*day)
	f := c.Flags()
	f.StringVar(&r.file, "file", "", "read this file with the output of sacct, and ask no cluster")
	f.Var(&r.last, "last", "the period up to now, or to the end of the file")
	f.Var(&r.learn, "learn", "how much earlier history the forecast may learn from")
	f.Var(&r.suspend, "suspend-time", "SuspendTime of the cluster (default: asked)")
	f.Var(&r.bootLimit, "resume-timeout", "ResumeTimeout of the cluster (default: asked; with --file 10m)")
	f.Var(&r.boot, "boot", "how long a job waits for a boot (default: as seen)")
	f.StringVar(&r.staysUp, "stays-up", "", "nodes that never lose power, such as 'n[1-5]' (default: asked)")
	f.StringSliceVar(&r.keepAlives, "keep-alive", nil, "show a longer SuspendTime, such as 1h; may be repeated")
	f.Float64Var(&r.waitWorth, "wait-worth", 8, "how many idle node-hours an hour of one waiting job is worth")
	f.StringVar(&r.zone, "tz", "", "time zone of a file whose times are no Unix seconds")
	f.StringVar(&r.ownUser, "own-user", "",
		"user of Forewarm's own jobs, which are no demand (default who runs this; for a file none)")
}

func (r *reportFlags) run(a *app.App, cmd *cobra.Command) error {
	price, err := r.reach.parsePrice(cmd)
	if err != nil {
		return err
	}
	keeps, err := r.parseKeepAlives(cmd)
	if err != nil {
		return err
	}
	in, err := r.readPast(a, cmd)
	if err != nil {
		return err
	}
	if err := in.usable(cmd); err != nil {
		return err
	}
	in.forgetOld()
	got, err := coldstart.Evaluate(in.jobs, in.assume, in.period, coldstart.Options{WaitWorth: r.waitWorth,
		KeepAlives: keeps, Progress: func(float64) error { return cmd.Context().Err() }})
	if err != nil {
		if cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "%v", err)
	}
	if got.Summary.Starts == 0 {
		return &exit.Error{Code: exit.Failed, Message: "no GPU job started in the " + format.Duration(r.last.Duration()) +
			" before " + format.Time(atTime(in.period.Until)), Next: []string{cmd.CommandPath() + " --last 30d"}}
	}
	if price > 0 {
		in.price = price
	}
	shown := newShownReport(in, got, r)
	return output.Text(a, cmd, shown.From.Format(time.RFC3339), shown, shown.write)
}

// keepAlives are tried where nothing else is asked for.
var keepAlives = []time.Duration{10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	45 * time.Minute, time.Hour, 90 * time.Minute, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour,
	8 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 96 * time.Hour}

func (r *reportFlags) parseKeepAlives(cmd *cobra.Command) ([]int64, error) {
	var all []int64
	for _, text := range r.keepAlives {
		var one flags.Span
		if err := one.Set(text); err != nil {
			return nil, exit.UsageErrorf(cmd.CommandPath()+" --keep-alive 1h", "--keep-alive %q is no duration: %v", text, err)
		}
		all = append(all, one.Seconds())
	}
	if len(all) == 0 {
		for _, d := range keepAlives {
			all = append(all, int64(d/time.Second))
		}
	}
	return all, nil
}

// input is a history, with what is assumed of its cluster.
type input struct {
	past
	source string
	assume coldstart.Assumptions
	asked  bool // the cluster, for what is assumed
	period coldstart.Period
	price  money.MicroUSD // of a node for an hour; 0 is not known
	hides  bool           // the cluster hides jobs of other users from some
}

// usable says what keeps a history from being worth a report.
func (in input) usable(cmd *cobra.Command) error {
	gpus := 0
	for _, j := range in.jobs {
		gpus += j.GPUs
	}
	switch {
	case in.broken > 0 && len(in.jobs) == 0:
		return &exit.Error{Code: exit.Failed, Message: "no row of the history can be read; " + in.firstWrong,
			Next: []string{cmd.CommandPath() + " --help"}}
	case len(in.jobs) == 0:
		return &exit.Error{Code: exit.Failed, Message: "the history holds no job that ran",
			Next: []string{cmd.CommandPath() + " --last 30d"}}
	case gpus == 0:
		return &exit.Error{Code: exit.Failed, Message: "no job of the history says that it had GPUs",
			Detail: []string{"Slurm counts them from then on where slurm.conf says AccountingStorageTRES=gres/gpu"},
			Next:   []string{"forewarm slurm check"}}
	default:
		return nil
	}
}

// readPast reads the history, and what is assumed, from the file or the cluster.
func (r *reportFlags) readPast(a *app.App, cmd *cobra.Command) (input, error) {
	if r.file != "" {
		return r.readFile(a, cmd)
	}
	return r.askCluster(a, cmd)
}

// fileBootLimit is taken for ResumeTimeout where nobody can be asked.
const fileBootLimit = 10 * time.Minute

func (r *reportFlags) readFile(a *app.App, cmd *cobra.Command) (input, error) {
	if r.suspend == 0 {
		return input{}, exit.UsageErrorf(cmd.CommandPath()+" --file "+flags.Quote(r.file)+" --suspend-time 5m",
			"--suspend-time is missing: a file does not say when the cluster powers nodes down (scontrol show config)")
	}
	var zone *time.Location
	if r.zone != "" {
		var err error
		if zone, err = a.Zone(cmd, r.zone); err != nil {
			return input{}, err
		}
	}
	file, err := os.Open(r.file)
	if err != nil {
		return input{}, &exit.Error{Code: exit.Usage, Message: "opening the history: " + err.Error(),
			Next: []string{sacctLine}, Err: err}
	}
	defer func() { _ = file.Close() }() // only read
	reader := newSacctReader(zone, r.ownUser)
	if err := reader.read(file); err != nil {
		return input{}, historyError(err)
	}
	in := input{past: reader.past, source: r.file}
	in.assume = coldstart.Assumptions{SuspendTime: r.suspend.Seconds(), BootLimit: int64(fileBootLimit / time.Second)}
	if err := r.overrideAssumptions(cmd, &in); err != nil {
		return input{}, err
	}
	in.period = r.periodUntil(in.lastEvent(), in)
	return in, nil
}

func historyError(err error) error {
	e := &exit.Error{Code: exit.Failed, Message: err.Error(), Next: []string{"forewarm slurm report --help"}, Err: err}
	if errors.Is(err, errHeader) {
		e.Next = []string{sacctLine}
	}
	return e
}

// overrideAssumptions lets the flags go before what was asked.
func (r *reportFlags) overrideAssumptions(cmd *cobra.Command, in *input) error {
	if r.suspend > 0 {
		in.assume.SuspendTime = r.suspend.Seconds()
	}
	if r.bootLimit > 0 {
		in.assume.BootLimit = r.bootLimit.Seconds()
	}
	in.assume.Boot = r.boot.Seconds()
	if r.staysUp == "" {
		return nil
	}
	hosts, err := expandHosts(r.staysUp)
	if err != nil {
		return exit.UsageErrorf(cmd.CommandPath()+" --stays-up 'n[1-5]'", "--stays-up %v", err)
	}
	in.assume.NodeSuspendTime = map[string]int64{}
	for _, host := range hosts {
		in.assume.NodeSuspendTime[host] = coldstart.Never
	}
	return nil
}

// askCluster asks for what is assumed, and for the history week by week, so that
// no answer is too long.
func (r *reportFlags) askCluster(a *app.App, cmd *cobra.Command) (input, error) {
	cluster, err := r.reach.open(a, cmd)
	if err != nil {
		return input{}, err
	}
	f, err := readNodes(cmd.Context(), cluster)
	if err != nil {
		return input{}, askError(cmd, err)
	}
	in := input{source: "sacct", asked: true, price: f.onlyPrice(prices{offers: cluster.Offers})}
	if in.assume, err = f.assumptions(); err != nil && r.suspend == 0 {
		return input{}, exit.UsageErrorf("forewarm slurm check", "%v", err)
	}
	in.hides = slices.Contains(f.config.words("PrivateData"), "jobs")
	reader := newSacctReader(nil, r.ownUser)
	if reader.ownUser == "" {
		if reader.ownUser, err = cluster.User(cmd.Context()); err != nil {
			return input{}, askError(cmd, err)
		}
	}
	if err := r.askHistory(cmd.Context(), cluster, reader); err != nil {
		return input{}, askError(cmd, err)
	}
	in.past = reader.past
	if err := r.overrideAssumptions(cmd, &in); err != nil {
		return input{}, err
	}
	in.period = r.periodUntil(a.Clock.Now().Unix(), in)
	return in, nil
}

// assumptions are what the cluster says of its power saving.
func (f facts) assumptions() (coldstart.Assumptions, error) {
	a := coldstart.Assumptions{NodeSuspendTime: map[string]int64{}, BootLimit: int64(fileBootLimit / time.Second),
		SuspendTime: coldstart.Never}
	if seconds, finite := f.config.seconds("ResumeTimeout"); finite && seconds > 0 {
		a.BootLimit = seconds
	}
	if seconds, finite := f.config.seconds("SuspendTime"); finite && f.powerSaving() {
		a.SuspendTime = seconds
	}
	saves := a.SuspendTime != coldstart.Never
	for _, n := range f.nodes {
		seconds, down := f.suspendTime(n)
		if !down {
			seconds = coldstart.Never
		}
		if seconds != a.SuspendTime {
			a.NodeSuspendTime[n.name] = seconds
		}
		saves = saves || down
	}
	if !saves {
		return a, errors.New("no node of this cluster is ever powered down, so that no job waits for a boot")
	}
	return a, nil
}

// askHistory asks for the period and for what is learned from, oldest first.
func (r *reportFlags) askHistory(ctx context.Context, c app.SlurmCluster, reader *sacctReader) error {
	days := int((r.last.Duration() + r.learn.Duration() + day - 1) / day)
	for from := days; from > 0; from -= 7 {
		span := []string{fmt.Sprintf("--starttime=now-%ddays", from)}
		if from > 7 {
			span = append(span, fmt.Sprintf("--endtime=now-%ddays", from-7))
		}
		names, err := c.Run(ctx, "sacct", slices.Concat(ownArgs(reader.ownUser), span)...)
		if err != nil {
			return err
		}
		reader.readOwn(names)
		text, err := c.Run(ctx, "sacct", slices.Concat(sacctArgs, span)...)
		if err != nil {
			return err
		}
		if err := reader.read(strings.NewReader(text)); err != nil {
			return err
		}
	}
	return nil
}

// lastEvent is the last moment of which the history speaks.
func (p past) lastEvent() int64 {
	last := int64(0)
	for _, j := range p.jobs {
		last = max(last, j.Start, j.End)
	}
	return last + 1
}

// periodUntil is the period that ends then. What is learned from, and what is
// known of nodes, begins with the first job that started.
func (r *reportFlags) periodUntil(until int64, in input) coldstart.Period {
	begin := until - r.last.Seconds() - r.learn.Seconds()
	first := until
	for _, j := range in.jobs {
		first = min(first, j.Start)
	}
	begin = min(max(begin, first), until-1)
	return coldstart.Period{Begin: begin, From: max(begin, until-r.last.Seconds()), Until: until}
}

// forgetOld drops what ended before the period and what is learned from.
func (in *input) forgetOld() {
	in.jobs = slices.DeleteFunc(in.jobs, func(j coldstart.Job) bool {
		return j.End != 0 && j.End < in.period.Begin || j.Start >= in.period.Until
	})
}

// onlyPrice is what a node costs if that is the same in every partition; 0 if not.
func (f facts) onlyPrice(p prices) money.MicroUSD {
	only := money.MicroUSD(0)
	for _, n := range f.nodes {
		for _, name := range n.partitions {
			price, known := p.ofNode(name, n.gpus)
			switch {
			case !known || n.gpus == 0:
			case only != 0 && only != price:
				return 0
			default:
				only = price
			}
		}
	}
	return only
}
