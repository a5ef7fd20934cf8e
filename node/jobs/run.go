package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/work"
)

// The files that a runner is started with, both locked.
const (
	lifeFile  = 3
	beginFile = 4
)

// waits are how long a runner waits for what should come by itself. Whoever is told to hang up was
// killed before.
var waits = work.Runner{Kill: 5 * time.Second, Drain: work.Default.Drain}

// Run runs the attempt in a folder to its end, writes down how it ended, and returns an exit code. It
// is the life of a runner: the daemon alone starts it, once for each attempt.
func Run(dir string, l launch.Launcher) (exitCode int) {
	heedNoSignals()
	if err := run(folder(dir), l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// heedNoSignals keeps the runner to the end: what ends it without its command loses how that ended.
func heedNoSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
}

func run(dir folder, l launch.Launcher) error {
	begin, err := dir.inherit()
	if err != nil {
		return err
	}
	defer func() { _ = begin.Close() }()
	what, err := dir.readOrder()
	if err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	out := &output{folder: dir, clock: clock.System{}}
	from := now()
	from.Of = dir.name()
	if err := dir.write(startedFile, from); err != nil {
		return fmt.Errorf("before anything is started: %w", err)
	}
	what.Place.Launcher, what.Place.Alone = l, true
	r := perform(dir, what, out, begin, from)
	r.Reason = clip(r.Reason)
	if err := out.close(); err != nil {
		r.Reason = clip(cmp.Or(r.Reason, "not all of its output could be kept: "+err.Error()))
	}
	r.Of = dir.name()
	return dir.write(resultFile, r)
}

// inherit takes over the locks. Without them, or in a folder in which something was started, it is not
// the daemon that asks.
func (f folder) inherit() (begin *os.File, err error) {
	for fd, name := range map[int]string{lifeFile: lockFile, beginFile: beginLock} {
		syscall.CloseOnExec(fd)
		want, err := os.Stat(f.file(name))
		if err != nil {
			return nil, err
		}
		var got syscall.Stat_t
		theirs, _ := want.Sys().(*syscall.Stat_t)
		if err := syscall.Fstat(fd, &got); err != nil || theirs == nil || got.Ino != theirs.Ino || got.Dev != theirs.Dev {
			return nil, errors.New("jobs are run by the daemon alone")
		}
	}
	if _, ended, _ := f.readResult(); ended || f.readStarted() != nil {
		return nil, errors.New("it was started before")
	}
	return os.NewFile(beginFile, beginLock), nil // the other one is open as long as the process is there
}

// perform runs the command to its end, and closes begin once it is in its place.
func perform(dir folder, what accepted, out *output, begin *os.File, from *started) result {
	o := what.Order
	if len(o.Command) == 0 {
		return result{Code: contract.JobNotStarted, Reason: "the order names no command"}
	}
	group, err := makeCgroup(what.Place, o.JobKey)
	if err != nil {
		return result{Code: contract.JobNotStarted, Reason: err.Error()}
	}
	defer group.remove()
	if group != "" {
		what.Place.Cgroup = string(group)
	}
	command := work.Command{Arguments: o.Command, Directory: o.Directory, Environment: environmentOf(o)}
	box := what.boxed(dir, command)
	if box != nil {
		if what.Place, command, err = box.enter(what.Place, command); err != nil {
			return result{Code: contract.JobNotStarted, Reason: err.Error()}
		}
		defer box.remove()
	}
	p, err := work.Start(what.Place, command)
	_ = begin.Close()
	if err != nil {
		return result{Code: contract.JobNotStarted, Reason: err.Error()}
	}
	ran := make(chan float64, 1)
	go func() {
		<-p.Exited()
		ran <- from.age()
	}()
	script := &script{steps: stepsOf(o), stop: out.folder.awaitStop(p.Exited()), exited: p.Exited(),
		over: make(chan struct{})}
	end := waits.Carry(context.Background(), p, duplex{output: out, script: script})
	close(script.over)
	if end.Code == session.NotStarted {
		return result{Code: contract.JobNotStarted, Reason: end.Reason}
	}
	if why := box.refused(end); why != "" {
		return result{Code: contract.JobNotStarted, Reason: why}
	}
	r := result{ExitCode: end.ExitCode, Signal: end.Signal, Reason: end.Reason}
	select {
	case <-p.Exited():
		r.RanSeconds = <-ran
	default: // the kernel holds it
		r.RanSeconds = from.age()
	}
	r.PeakMemory = cmp.Or(group.peak(), p.MostMemory())
	why, killed := group.killedForMemory()
	switch {
	case script.limited.Load():
		r.Code = contract.JobTimeLimit
		r.Reason = cmp.Or(r.Reason, fmt.Sprintf("its time of %d s was over", o.MaxRuntimeSeconds))
	case script.stopped.Load():
		r.Code = contract.JobStopped
	case killed && r.ExitCode != 0:
		r.Code, r.Reason = contract.JobOutOfMemory, why
	}
	return r
}

// environmentOf is what a job finds beside what its hold brings.
func environmentOf(o contract.JobOrder) map[string]string {
	env := maps.Clone(o.Environment)
	if env == nil {
		env = map[string]string{}
	}
	env["FOREWARM_JOB_ID"], env["FOREWARM_JOB_ATTEMPT"] = o.JobID, strconv.Itoa(o.Attempt)
	env["FOREWARM_JOB_RANK"] = strconv.Itoa(o.Rank)
	addSlurm(env, o)
	return env
}
