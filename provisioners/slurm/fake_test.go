package slurm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// commands are Slurm's, as which the test binary runs itself again.
var commands = []string{"sacct", "sbatch", "scancel", "scontrol", "sinfo", "squeue"}

func TestMain(m *testing.M) {
	if slices.Contains(commands, filepath.Base(os.Args[0])) {
		// Not os.Exit: with the race detector that waits a second.
		syscall.Exit(fakeMain(filepath.Dir(os.Args[0]), filepath.Base(os.Args[0]), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// world is a Slurm cluster that does not exist. It lives in a file beside its
// commands, on a clock that the test owns, and does what 22.05.8 was seen to do.
type world struct {
	Now      time.Time
	Next     int
	Jobs     []*fakeJob
	Nodes    []*fakeNode
	Boot     time.Duration // from a job's start until its node runs it
	Probe    time.Duration // from there until the placeholder has published
	Faults   map[string]int
	Calls    []string // every command line, for tests that count
	NoReport bool     // the probe never passes
	Elastic  elastic  // what an observed cluster has beside
}

type fakeNode struct {
	Name, Partition, State, Gres string
	GPUs                         int
	Hidden                       bool // until a job wakes it, as cloud nodes are
	Power                        fakePower
}

// folder is where a world lives.
type folder string

func newWorld(t *testing.T, w world) folder {
	t.Helper()
	f := folder(t.TempDir())
	self, err := os.Executable()
	require.NoError(t, err)
	for _, name := range commands {
		require.NoError(t, os.Symlink(self, filepath.Join(string(f), name)))
	}
	w.Faults = map[string]int{}
	w.Next = max(w.Next, 100)
	require.NoError(t, f.writeWorld(w))
	return f
}

// updateWorld lets do see and change the world, alone.
func (f folder) updateWorld(do func(*world)) error {
	lock, err := os.OpenFile(filepath.Join(string(f), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(string(f), "world.json"))
	if err != nil {
		return err
	}
	var w world
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	w.advance()
	do(&w)
	w.advance()
	return f.writeWorld(w)
}

func (f folder) writeWorld(w world) error {
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(string(f), "world.json"), data, 0o600)
}

// mustUpdate is change for tests.
func (f folder) mustUpdate(t *testing.T, do func(*world)) {
	t.Helper()
	require.NoError(t, f.updateWorld(do))
}

// armFault makes the next call of the name misbehave.
func (f folder) armFault(t *testing.T, name string) func() {
	return func() { f.mustUpdate(t, func(w *world) { w.Faults[name]++ }) }
}

// takeFault reports whether a fault is due, and uses it up.
func (w *world) takeFault(name string) bool {
	if w.Faults[name] == 0 {
		return false
	}
	w.Faults[name]--
	return true
}

// reply is what a command prints and how it ends.
type reply struct {
	out, complaint string
	code           int
}

func complain(format string, args ...any) reply {
	return reply{complaint: fmt.Sprintf(format, args...) + "\n", code: 1}
}

const unreachable = "Unable to contact slurm controller (connect failure)"

func fakeMain(dir, name string, args []string) int {
	var r reply
	hangs := false
	err := folder(dir).updateWorld(func(w *world) {
		w.Calls = append(w.Calls, name+" "+strings.Join(args, " "))
		if w.takeFault("throttle") {
			r = complain("%s: error: Rate limit exceeded, please retry momentarily", name)
			return
		}
		r = w.answerCommand(name, args)
		hangs = w.takeFault(name + " hangs")
	})
	if err != nil {
		r = complain("the fake is broken: %v", err)
	}
	if hangs { // it has done its work, and never says so
		_, _ = io.Copy(io.Discard, os.Stdin)
		time.Sleep(time.Hour)
	}
	fmt.Fprint(os.Stdout, r.out)
	fmt.Fprint(os.Stderr, r.complaint)
	return r.code
}

func (w *world) answerCommand(name string, args []string) reply {
	options := map[string]string{}
	var words []string
	for _, arg := range args {
		if option, value, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "--") {
			options[option[2:]] = value
		} else {
			words = append(words, arg)
		}
	}
	switch name {
	case "squeue":
		return w.runSqueue(options)
	case "sbatch":
		if w.Elastic.On {
			return w.runElasticSbatch(options)
		}
		return w.runSbatch(options)
	case "scancel":
		return w.runScancel(words)
	case "sinfo":
		return w.runSinfo(options)
	case "sacct":
		return w.runSacct(options)
	default:
		if w.Elastic.On {
			if r, known := w.runElasticScontrol(words); known {
				return r
			}
		}
		return w.runScontrol(words)
	}
}
