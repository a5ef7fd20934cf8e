// Package supervise runs the commands of sessions in processes of their own, so that a command outlives the daemon
// that started it, the server that carried it, and its holder's connection.
//
// Each command has a supervisor: the daemon's own program, in a session of its own. It has a socket in the daemon's
// folder, by which a daemon, this one or a later one, carries what the holder and the command say to each other. What
// one side has sent and the other has not taken is kept, and sent again on the next connection.
package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/work"
)

// beginsWithin is how long a supervisor may take until its command is in its place: the launcher has ten seconds.
const beginsWithin = 20 * time.Second

// Order is what a supervisor runs.
type Order struct {
	Place   hold.Place
	Command work.Command
	Runner  work.Runner
	// Patience is how long the command waits for a holder whose connection was cut; 0: it is hung up at once, and
	// what it says need not be acknowledged.
	Patience time.Duration
}

// greeting is what a daemon says first on a connection to a supervisor.
type greeting struct {
	Watch bool   `json:"watch,omitempty"` // it only waits for the beginning, and for the end
	Taken uint64 `json:"taken,omitempty"` // numbered messages that the holder has
}

// mostGreeting bounds a greeting, in bytes.
const mostGreeting = 1 << 10

// ErrNotThere says that no supervisor has the command: it has ended, or was hung up.
var ErrNotThere = errors.New("no such command runs here for this allocation: it has ended, or waited for its holder " +
	"for too long and was hung up")

// Supervisors are those of a node's daemon. They are safe for concurrent use.
type Supervisors struct {
	command []string
	path    string
	dir     *os.File // paths of sockets may have no more than 107 bytes: they begin with its descriptor's
}

// Open returns the supervisors whose sockets are in a folder, which is made. The command is the line of a program that
// calls Run.
func Open(dir string, command []string) (*Supervisors, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of sessions: %w", err)
	}
	d, err := os.Open(dir) //nolint:gosec // the daemon's own
	if err != nil {
		return nil, fmt.Errorf("opening the folder of sessions: %w", err)
	}
	return &Supervisors{command: command, path: dir, dir: d}, nil
}

// Close forgets the supervisors, which go on.
func (s *Supervisors) Close() { _ = s.dir.Close() }

func nameOf(allocationID, resumeID string) string { return allocationID + "." + resumeID }

func (s *Supervisors) address(name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: "/proc/self/fd/" + strconv.Itoa(int(s.dir.Fd())) + "/" + name}
}

// Start has a supervisor run a command of an allocation, and returns once the command is in its place, by which an end
// of its hold finds it, or will not be, which whoever attaches is told.
func (s *Supervisors) Start(allocationID, resumeID string, o Order) (*Watch, error) {
	name := nameOf(allocationID, resumeID)
	if !hold.IsName(allocationID) || !session.IsResumeID(resumeID) {
		return nil, fmt.Errorf("%q is no name of a session", name)
	}
	if err := s.run(name, o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the supervisor of a session: %w", err), s.remove(name))
	}
	w, err := s.watch(name)
	if err != nil {
		return nil, fmt.Errorf("the supervisor of a session did not begin: %w", err)
	}
	return w, nil
}

// run starts a supervisor, which has its socket before it begins: a daemon that begins meanwhile finds it.
func (s *Supervisors) run(name string, o Order) error {
	l, err := net.ListenUnix("unix", s.address(name))
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	defer func() { _ = l.Close() }()
	listener, err := l.File()
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	told, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _, _ = told.Close(), tell.Close() }()
	cmd := &exec.Cmd{Path: s.command[0], Args: s.command, Dir: "/", Env: []string{"GOMAXPROCS=2"}, Stdin: told,
		ExtraFiles:  []*os.File{listener}, // socketFile
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()                     // it may outlive this daemon
	_ = tell.SetDeadline(time.Now().Add(beginsWithin)) //nolint:forbidigo // the kernel's time, for a deadline
	return errors.Join(json.NewEncoder(tell).Encode(o), tell.Close())
}

// Has reports whether a command of an allocation has a supervisor.
func (s *Supervisors) Has(allocationID, resumeID string) bool {
	w, err := s.watch(nameOf(allocationID, resumeID))
	if err == nil {
		w.Close()
	}
	return err == nil
}

// Resume returns a line to a command of an allocation, whose holder has taken so many of its numbered messages. Who had
// one before has it no more. ErrNotThere: nothing has the command.
func (s *Supervisors) Resume(allocationID, resumeID string, taken uint64) (*session.Line, error) {
	if !hold.IsName(allocationID) || !session.IsResumeID(resumeID) {
		return nil, ErrNotThere
	}
	conn, err := s.dial(nameOf(allocationID, resumeID), greeting{Taken: taken})
	if err != nil {
		return nil, err
	}
	return session.NewLine(conn), nil
}

func (s *Supervisors) dial(name string, g greeting) (net.Conn, error) {
	conn, err := net.DialUnix("unix", nil, s.address(name))
	if err != nil {
		return nil, ErrNotThere
	}
	text, err := json.Marshal(g)
	if err == nil {
		_, err = conn.Write(session.AppendFrame(nil, text))
	}
	if err != nil {
		return nil, errors.Join(ErrNotThere, conn.Close())
	}
	return conn, nil
}

func (s *Supervisors) remove(name string) error {
	err := os.Remove(filepath.Join(s.path, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Earlier returns the supervisors that earlier daemons have started and that are still there, once what they were
// starting has started, so that holds can be ended afterwards. What is left of others is removed.
func (s *Supervisors) Earlier() ([]*Watch, error) {
	names, err := os.ReadDir(s.path)
	if err != nil {
		return nil, fmt.Errorf("reading the folder of sessions: %w", err)
	}
	var all []*Watch
	for _, entry := range names {
		w, err := s.watch(entry.Name())
		if err == nil {
			all = append(all, w)
		}
	}
	return all, nil
}

// Watch is a supervisor that is there.
type Watch struct {
	AllocationID string
	conn         net.Conn
	gone         chan struct{}
}

// watch waits until a supervisor has begun. One that is not there is forgotten.
func (s *Supervisors) watch(name string) (*Watch, error) {
	allocationID, _, _ := strings.Cut(name, ".")
	w := &Watch{AllocationID: allocationID, gone: make(chan struct{})}
	var err error
	if w.conn, err = s.dial(name, greeting{Watch: true}); err != nil {
		return nil, errors.Join(err, s.remove(name))
	}
	_ = w.conn.SetDeadline(time.Now().Add(beginsWithin)) //nolint:forbidigo // the kernel's time, for a deadline
	if err := w.await(); err != nil {
		_ = w.conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, errors.New("it hangs")
		}
		return nil, errors.Join(ErrNotThere, s.remove(name))
	}
	_ = w.conn.SetDeadline(time.Time{})
	go func() {
		defer close(w.gone)
		err := w.await() // it says nothing more
		if !errors.Is(err, net.ErrClosed) {
			_ = s.remove(name)
		}
	}()
	return w, nil
}

// await waits for the word that the command has begun.
func (w *Watch) await() error {
	_, err := session.ReadFrame(w.conn, nil, 0)
	return err
}

// Gone is closed once the supervisor has ended, or Close was called.
func (w *Watch) Gone() <-chan struct{} { return w.gone }

// Close stops watching. The supervisor goes on.
func (w *Watch) Close() {
	_ = w.conn.Close()
	<-w.gone
}
