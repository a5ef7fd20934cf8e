package jobs

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/container"
	"github.com/forewarm/forewarm/node/hold"
)

// The files in the folder of an attempt, beside those with output.
const (
	orderFile   = "order.json"
	startedFile = "started.json" // written before anything runs; a machine that ends may forget it
	resultFile  = "result.json"  // written when nothing does any more
	lockFile    = "lock"         // locked as long as the runner lives
	beginLock   = "begin"        // locked until the command is in its place, or will not be
	logFile     = "runner.log"
)

// kept are the files that stay, without content, in the folder of an attempt that is over.
var kept = []string{orderFile, startedFile, resultFile, lockFile, beginLock, logFile}

// unfinished begins the name of a folder that is being made or removed.
const unfinished = "."

// folder is that of an attempt.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

func (f folder) name() string { return filepath.Base(string(f)) }

func (f folder) unfinished() folder {
	return folder(filepath.Join(filepath.Dir(string(f)), unfinished+f.name()))
}

// accepted is what is to run, and where.
type accepted struct {
	BootID string            `json:"boot_id"` // of the machine when it was
	Order  contract.JobOrder `json:"order"`
	Place  hold.Place        `json:"place"`
	// Containers is what runs it, if it has an image.
	Containers container.Runtime `json:"containers,omitzero"`
}

// started is when a runner began to start its command.
type started struct {
	Of      string  `json:"of,omitempty"`
	BootID  string  `json:"boot_id"` // of the machine, as its kernel names this boot
	Seconds float64 `json:"seconds"` // since then
}

// result is how an attempt ended. Of names that, as started does: a machine that ends may forget that the file was of
// another one before.
type result struct {
	Of         string  `json:"of,omitempty"`
	ExitCode   int     `json:"exit_code"`
	Signal     string  `json:"signal,omitempty"`
	Code       string  `json:"code,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	RanSeconds float64 `json:"ran_seconds"`
	PeakMemory int64   `json:"peak_memory,omitempty"` // bytes; 0: it is not known
}

func nameOf(key contract.JobKey) string { return key.JobID + "-" + strconv.Itoa(key.Attempt) }

func keyOf(name string) (key contract.JobKey, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return key, false
	}
	n, err := strconv.Atoi(name[i+1:])
	return contract.JobKey{JobID: name[:i], Attempt: n}, err == nil && n > 0 && hold.IsName(name[:i])
}

// read reads a file, and reports whether there is one. What a later version has added to it is no
// matter: a runner may be of another version than the daemon.
func (f folder) read(name string, v any) (found bool, err error) {
	text, err := os.ReadFile(f.file(name))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(text) == 0 {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	return err == nil, err
}

func (f folder) readOrder() (accepted, error) {
	var what accepted
	found, err := f.read(orderFile, &what)
	if err == nil && !found {
		err = errors.New("there is none")
	}
	return what, err
}

func (f folder) readStarted() *started {
	var s started
	if found, _ := f.read(startedFile, &s); !found || s.Of != "" && s.Of != f.name() {
		return nil
	}
	return &s
}

func (f folder) readResult() (r result, found bool, err error) {
	found, err = f.read(resultFile, &r)
	return r, found && (r.Of == "" || r.Of == f.name()), err
}

// lastWords is what a runner said last, which is little: how it failed.
func (f folder) lastWords() string {
	file, err := os.Open(f.file(logFile))
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	text, _ := io.ReadAll(io.LimitReader(file, mostReason))
	return strings.TrimSpace(string(text))
}

// now is how long the machine is up.
func now() *started {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // there is no kernel without it
	return &started{BootID: bootID(), Seconds: float64(t.Nano()) / 1e9}
}

// bootID names since when the machine is up, which no process outlives.
var bootID = sync.OnceValue(func() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
})

// age is how long ago it began, in seconds; 0 if it has not, or the machine booted since.
func (s *started) age() float64 {
	if s == nil {
		return 0
	}
	by := now()
	if by.BootID != s.BootID {
		return 0
	}
	return max(0, by.Seconds-s.Seconds)
}

// mostReason bounds a reason, as the contract does.
const mostReason = 300

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), mostReason)], "") }
