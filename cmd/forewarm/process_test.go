package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/internal/httpx"
)

// binary is the program under test, built once as releases and make build it.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "forewarm-e2e")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "forewarm")
	build := exec.Command("go", "build", "-p", "2", "-tags", "nomsgpack", "-trimpath", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		log.Printf("building the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// patience is how long anything may take on a slow, busy machine before a test
// calls it stuck. No test waits for it to pass.
const patience = 3 * time.Minute

// home is what a program keeps between its runs.
type home struct{ dir string }

func newHome(t *testing.T) home { return home{dir: t.TempDir()} }

func (h home) dataDir() string    { return filepath.Join(h.dir, "data") }
func (h home) configFile() string { return filepath.Join(h.dir, "forewarm.yaml") }

func (h home) writeConfig(t *testing.T, config string) {
	t.Helper()
	require.NoError(t, os.WriteFile(h.configFile(), []byte(config), 0o600))
}

var savedKey = regexp.MustCompile(`key: (\S+)`)

var contextSaved = regexp.MustCompile(`context +"\S+" (saved|has a key|is selected)`)

// awaitKey is the one that the first start saved, of which later ones tell.
func (h home) awaitKey(t *testing.T, first *process) string {
	t.Helper()
	first.awaitLine(t, 0, patience, contextSaved)
	return h.savedKey(t)
}

func (h home) savedKey(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "config", "forewarm", "contexts.yaml"))
	require.NoError(t, err)
	found := savedKey.FindSubmatch(text)
	require.NotNil(t, found, "a key in %s", text)
	return string(found[1])
}

// process is one run of the program.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	mu     sync.Mutex
	lines  []string
	grown  chan struct{} // closed and replaced with every line
	errors written
}

// written is what a process has written so far.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// start runs the program in a home with a clean environment.
func (h home) start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), done: make(chan struct{}),
		grown: make(chan struct{})} //nolint:gosec // our own binary
	p.cmd.Env = append([]string{"HOME=" + h.dir, "XDG_CONFIG_HOME=" + filepath.Join(h.dir, "config"),
		"PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}, env...)
	p.cmd.Stderr = &p.errors
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.followOutput(bufio.NewScanner(out))
	t.Cleanup(p.kill)
	return p
}

// startUp runs forewarm up in a home that has no key but its own, and opens the door to it
// with the key that it saved.
func (h home) startUp(t *testing.T, args ...string) (*process, *door, *client.Client) {
	t.Helper()
	p := h.start(t, nil, append([]string{"up"}, args...)...)
	address := p.awaitAddress(t)
	d, api := openDoor(t, address, h.awaitKey(t, p))
	return p, d, api
}

func (p *process) followOutput(lines *bufio.Scanner) {
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
	}
	_ = p.cmd.Wait() // its code is in ProcessState
	close(p.done)
}

// kill ends the process as a power cut would, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be over
	<-p.done
}

// stop asks the process to end and returns its exit code.
func (p *process) stop(t *testing.T, within time.Duration) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	return p.wait(t, within)
}

func (p *process) wait(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("the program runs on after %v:\n%s", within, p.output())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// awaitLine waits for a line of the output from the from-th on, and returns its
// number and what the expression's group matched.
func (p *process) awaitLine(t *testing.T, from int, within time.Duration, want *regexp.Regexp) (int, []string) {
	t.Helper()
	limit := time.After(within)
	for i := from; ; {
		p.mu.Lock()
		grown := p.grown
		for ; i < len(p.lines); i++ {
			if found := want.FindStringSubmatch(p.lines[i]); found != nil {
				p.mu.Unlock()
				return i, found
			}
		}
		p.mu.Unlock()
		select {
		case <-grown:
		case <-p.done:
			t.Fatalf("the program ended before a line like %s:\n%s\n%s", want, p.output(), p.errors.String())
		case <-limit:
			t.Fatalf("no line like %s in %v:\n%s", want, within, p.output())
		}
	}
}

var apiLine = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/v1`)

// awaitAddress is where the program serves its API.
func (p *process) awaitAddress(t *testing.T) string {
	t.Helper()
	_, found := p.awaitLine(t, 0, patience, apiLine)
	return found[1]
}

// door sends every request to where the server is now: a restarted one has a
// new port.
type door struct {
	mu   sync.Mutex
	base *url.URL
	http *http.Client
}

func newDoor() *door { return &door{http: httpx.NewClient(httpx.Config{Timeout: 30 * time.Second})} }

// openDoor opens a door to the server at base, and returns the client that asks with
// the key whatever is behind it.
func openDoor(t *testing.T, base, key string) (*door, *client.Client) {
	t.Helper()
	d := newDoor()
	d.open(t, base)
	api, err := client.New("http://forewarm.invalid", key, d)
	require.NoError(t, err)
	return d, api
}

func (d *door) open(t *testing.T, base string) {
	t.Helper()
	u, err := url.Parse(base)
	require.NoError(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base = u
}

func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base = nil
}

var errClosed = errors.New("no server is up")

// Do implements client.Doer.
func (d *door) Do(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	base := d.base
	d.mu.Unlock()
	if base == nil {
		return nil, errClosed
	}
	r.URL.Scheme, r.URL.Host, r.Host = base.Scheme, base.Host, base.Host
	resp, err := d.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", base.Host, err)
	}
	return resp, nil
}

// eventually asks again and again until there is nothing to say against it.
func eventually(t *testing.T, within time.Duration, against func() string) {
	t.Helper()
	limit := time.After(within)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		last := against()
		if last == "" {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("still after %v: %s", within, last)
		}
	}
}

// freePort is an address that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(forklock.FreePort()))
}
