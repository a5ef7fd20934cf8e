package jobs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The start of a runner costs more than a short job does. So one that has run an attempt waits for another.
const (
	// mostIdle is how many runners wait at most.
	mostIdle = 8
	// idleFor is how long one does.
	idleFor = 5 * time.Minute
)

// What a runner says.
const (
	saysBegun = 'b' // the command is in its place, or will not be
	saysOver  = 'o' // the attempt is over, and there may be another one
	saysLast  = 'l' // the attempt is over, and the runner ends
)

// runner is a process that runs attempts for this daemon, one at a time. Where the daemon ends, it ends after the one
// that it runs.
type runner struct {
	orders *net.UnixConn

	mu   sync.Mutex
	runs *turn       // nil: nothing
	gone bool        // the process has ended, or is about to
	idle *time.Timer // ends it if it waits for too long
}

// turn is an attempt that a runner runs.
type turn struct {
	of    *attempt
	begun chan struct{} // closed once the command is in its place, or will not be
}

// runners are those that wait. They are safe for concurrent use.
type runners struct {
	command []string

	mu     sync.Mutex
	idle   []*runner
	closed bool
}

// run has a runner run an attempt. The files are what it is given, in their order.
func (all *runners) run(a *attempt, files []*os.File) (*turn, error) {
	t := &turn{of: a, begun: make(chan struct{})}
	for r := all.take(); r != nil; r = all.take() {
		if r.give(t, files) == nil { // else it has ended by itself
			return t, nil
		}
	}
	r, err := all.start(files[logOf])
	if err == nil {
		err = r.give(t, files)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the runner of the job: %w", err)
	}
	return t, nil
}

// take returns a runner that waits; nil: none does.
func (all *runners) take() *runner {
	all.mu.Lock()
	defer all.mu.Unlock()
	last := len(all.idle) - 1
	if last < 0 {
		return nil
	}
	r := all.idle[last]
	all.idle = all.idle[:last]
	r.idle.Stop()
	return r
}

// put keeps a runner that waits, or has it end.
func (all *runners) put(r *runner) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed || len(all.idle) >= mostIdle {
		_ = r.orders.Close()
		return
	}
	all.idle = append(all.idle, r)
	r.idle = time.AfterFunc(idleFor, func() { all.drop(r) })
}

// drop has a runner end that waits.
func (all *runners) drop(r *runner) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for i, other := range all.idle {
		if other == r {
			all.idle = append(all.idle[:i], all.idle[i+1:]...)
			_ = r.orders.Close()
			return
		}
	}
}

// close has the runners end that wait, and the others when they do.
func (all *runners) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, r := range all.idle {
		r.idle.Stop()
		_ = r.orders.Close()
	}
	all.idle, all.closed = nil, true
}

// start starts a runner, which is a child of the daemon's, in a session of its own. Until it runs anything, what it
// says of itself goes to the log.
func (all *runners) start(log *os.File) (*runner, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "orders"), os.NewFile(uintptr(pair[1]), "orders")
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	orders, _ := conn.(*net.UnixConn)
	cmd := &exec.Cmd{Path: all.command[0], Args: all.command, Dir: "/", Env: []string{"GOMAXPROCS=2"}, Stderr: log,
		ExtraFiles: []*os.File{theirs}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}} // theirs is ordersFile
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	r := &runner{orders: orders}
	go func() { _ = cmd.Wait() }() // it may outlive this daemon
	go r.listen(all)
	return r, nil
}

// give hands an attempt to a runner that runs none.
func (r *runner) give(t *turn, files []*os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return errors.New("it has ended")
	}
	numbers := make([]int, len(files))
	for i, f := range files {
		numbers[i] = int(f.Fd()) //nolint:gosec // a descriptor is small
	}
	_, _, err := r.orders.WriteMsgUnix([]byte(t.of.folder), unix.UnixRights(numbers...), nil)
	if err == nil {
		r.runs = t
	}
	return err
}

// listen hears what a runner says, until it has ended. What ends with it is looked at at once.
func (r *runner) listen(all *runners) {
	word := make([]byte, 1)
	for {
		n, err := r.orders.Read(word)
		over := err != nil || n == 0
		switch {
		case over || word[0] == saysLast:
			r.end()
		case word[0] == saysBegun:
			r.begin()
		case word[0] == saysOver:
			r.rest()
			all.put(r)
		}
		if over {
			_ = r.orders.Close()
			return
		}
	}
}

func (r *runner) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs.begin()
}

// rest notes that what it ran is over.
func (r *runner) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs.end()
	r.runs = nil
}

// end notes that it runs nothing any more.
func (r *runner) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs.end()
	r.runs, r.gone = nil, true
}

func (t *turn) begin() {
	if t == nil {
		return
	}
	select {
	case <-t.begun:
	default:
		close(t.begun)
	}
}

func (t *turn) end() {
	if t == nil {
		return
	}
	t.begin()
	t.of.ring() // its end need not wait for the next look
}

// awaitBegin waits until the command is in its place, or will not be.
func (t *turn) awaitBegin() error {
	over := time.NewTimer(beginsWithin)
	defer over.Stop()
	select {
	case <-t.begun:
		return nil
	case <-over.C:
		return errHangs
	}
}
