package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/work"
)

// ordersFile is the socket by which a runner is told what to run.
const ordersFile = 3

// The files of an attempt that a runner is given, the first two locked.
const (
	lifeOf = iota
	beginOf
	logOf
	filesOfAttempt
)

// waits are how long a runner waits for what should come by itself. Whoever is told to hang up was
// killed before.
var waits = work.Runner{Kill: 5 * time.Second, Drain: work.Default.Drain}

// Run runs the attempts that it is told, one after another, each to its end, writes down how they ended, and returns an
// exit code. It is the life of a runner: the daemon alone starts it, and has each attempt run once.
func Run(l launch.Launcher) (exitCode int) {
	heedNoSignals()
	orders, err := openOrders()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		dir, files, err := orders.next()
		if err != nil { // the daemon has no more for it, or is gone
			return 0
		}
		again, err := orders.run(dir, files, l)
		if err != nil {
			return 1
		}
		if !again {
			orders.say(saysLast)
			return 0
		}
		orders.say(saysOver)
	}
}

// heedNoSignals keeps the runner to the end: what ends it without its command loses how that ended.
func heedNoSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
}

// orders are what a runner is told.
type orders struct{ *net.UnixConn }

var errNotTold = errors.New("jobs are run by the daemon alone")

func openOrders() (o orders, err error) {
	file := os.NewFile(ordersFile, "orders")
	conn, err := net.FileConn(file)
	if err == nil {
		err = file.Close() // which a command would inherit
	}
	var ok bool
	if o.UnixConn, ok = conn.(*net.UnixConn); err != nil || !ok {
		return o, errNotTold
	}
	return o, nil
}

// next waits for the folder of an attempt, and its files.
func (o orders) next() (dir folder, files []*os.File, err error) {
	text, rights := make([]byte, mostPath), make([]byte, syscall.CmsgSpace(filesOfAttempt*4))
	n, of, _, _, err := o.ReadMsgUnix(text, rights)
	if err != nil {
		return "", nil, err
	}
	all, err := syscall.ParseSocketControlMessage(rights[:of])
	if err != nil || len(all) != 1 {
		return "", nil, errors.Join(err, errNotTold)
	}
	numbers, err := syscall.ParseUnixRights(&all[0])
	for _, fd := range numbers {
		files = append(files, os.NewFile(uintptr(fd), "")) //nolint:gosec // a descriptor is small
	}
	if err == nil && len(files) != filesOfAttempt {
		err = errNotTold
	}
	return folder(text[:n]), files, err
}

// mostPath is how long the path of a folder may be, in bytes.
const mostPath = 4096

// say tells the daemon something, if it is still there.
func (o orders) say(word byte) { _, _ = o.Write([]byte{word}) }

// run runs an attempt, and reports whether the runner is as it was before. What it says meanwhile goes to the log of
// the attempt, as does its end if it fails.
func (o orders) run(dir folder, files []*os.File, l launch.Launcher) (again bool, err error) {
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err := speakTo(files[logOf]); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, speakTo(nil)) }()
	again, err = run(dir, files, l, func() {
		_ = files[beginOf].Close()
		o.say(saysBegun)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return again, err
}

// speakTo has what this process says of itself go to a file; nil: nowhere.
func speakTo(file *os.File) (err error) {
	if file == nil {
		if file, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
	}
	return syscall.Dup3(int(file.Fd()), int(os.Stderr.Fd()), 0) //nolint:gosec // descriptors are small
}

// run runs an attempt, calls begun once its command is in its place or will not be, and reports whether the command has
// ended by itself, so that nothing is left of it.
func run(dir folder, files []*os.File, l launch.Launcher, begun func()) (again bool, err error) {
	begun = sync.OnceFunc(begun)
	defer begun()
	if err := dir.inherit(files); err != nil {
		return false, err
	}
	what, err := dir.readOrder()
	if err != nil {
		return false, fmt.Errorf("reading the order: %w", err)
	}
	out := &output{folder: dir, clock: clock.System{}}
	from := now()
	from.Of = dir.name()
	if err := dir.note(startedFile, from); err != nil {
		return false, fmt.Errorf("before anything is started: %w", err)
	}
	what.Place.Launcher, what.Place.Alone = l, true
	r := perform(dir, what, out, begun, from)
	r.Reason = clip(r.Reason)
	if err := out.close(); err != nil {
		r.Reason = clip(cmp.Or(r.Reason, "not all of its output could be kept: "+err.Error()))
	}
	r.Of = dir.name()
	return r.Code == "" && r.Reason == "", dir.write(resultFile, r)
}

// inherit takes over the locks. Without them, or in a folder in which something was started, it is not
// the daemon that asks.
func (f folder) inherit(files []*os.File) error {
	for i, name := range map[int]string{lifeOf: lockFile, beginOf: beginLock} {
		want, err := os.Stat(f.file(name))
		if err != nil {
			return err
		}
		if got, err := files[i].Stat(); err != nil || !os.SameFile(got, want) {
			return errNotTold
		}
	}
	if _, ended, _ := f.readResult(); ended || f.readStarted() != nil {
		return errors.New("it was started before")
	}
	return nil
}

// perform runs the command to its end, and calls begun once it is in its place, or will not be.
func perform(dir folder, what accepted, out *output, begun func(), from *started) result {
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
	begun()
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
	addRank(env, o)
	addSlurm(env, o)
	return env
}

// addRank gives the only process that each node of a gang has, which it has where the node has one GPU, its place among
// all, as torchrun would: such a job needs no launcher. Where a node has more GPUs, or none has others beside it, who
// starts the processes for them says which is which, and programs that found a rank would start none.
func addRank(env map[string]string, o contract.JobOrder) {
	nodes := o.HoldEnvironment["NNODES"]
	if nodes == "" || nodes == "1" || nodes != o.HoldEnvironment["WORLD_SIZE"] {
		return
	}
	addMissing(env, map[string]string{"RANK": strconv.Itoa(o.Rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"})
}

// addMissing adds variables that have a value, and that the job does not bring itself.
func addMissing(env, all map[string]string) {
	for name, value := range all {
		if _, given := env[name]; !given && value != "" {
			env[name] = value
		}
	}
}
