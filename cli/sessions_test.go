package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
	"github.com/forewarm/forewarm/node/supervise"
	"github.com/forewarm/forewarm/node/supervise/supervisetest"
	"github.com/forewarm/forewarm/node/work"
	"github.com/forewarm/forewarm/node/work/worktest"
)

// attachDaemons begins a daemon for each node of an allocation, and waits until commands can be
// run there.
func (w *town) attachDaemons(name string) {
	w.t.Helper()
	for rank, id := range strings.Fields(w.mustRun("allocations", "show", name, "--jq", ".access.nodes[].node_id")) {
		w.attachDaemon(id)
		require.Eventually(w.t, func() bool {
			_, _, code := w.runCommand("exec", name, "--node", strconv.Itoa(rank), "--", "true")
			return code == exit.OK
		}, time.Minute, 10*time.Millisecond)
	}
}

// attachDaemon begins the daemon of a node.
func (w *town) attachDaemon(nodeID string) {
	w.t.Helper()
	w.attached[nodeID] = true
	token := w.mustRun("api", "POST", "/v1/nodes/"+nodeID+"/join-token", "-d", "{}", "--jq", ".token")
	api, err := client.New(w.url, token, http.DefaultClient)
	require.NoError(w.t, err)
	joined, err := api.JoinNode(w.t.Context(), nodeID, contract.NodeJoin{BootID: "boot"})
	require.NoError(w.t, err)
	dir := newOpenDir(w.t)
	holds, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Grace: 100 * time.Millisecond,
		Launcher: launchtest.Launcher()})
	require.NoError(w.t, err)
	supervisors, err := supervise.Open(filepath.Join(dir, "sessions"), supervisetest.Command())
	require.NoError(w.t, err)
	transport := attach.NewTransport()
	at, err := attach.New(attach.Config{URL: w.url, BootID: "boot", Holds: holds, Supervisors: supervisors,
		Patience: 2 * time.Second, Hurry: func() {},
		Key: func() obs.Secret { return obs.NewSecret(joined.Key) }, Log: slog.New(slog.DiscardHandler),
		HTTP: &http.Client{Transport: transport}, Random: rand.New(rand.NewPCG(1, 2)),
		// As on a real node: who does not hear HUP, as while a folder is made, is told to end.
		Runner: work.Runner{HangUp: work.Default.HangUp, Terminate: time.Minute, Kill: time.Minute, Drain: time.Minute}})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		at.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
		transport.CloseIdleConnections()
		supervisors.Close()
		holds.EndAll()
	})
}

// newOpenDir is a folder that the users of holds can pass through, and none else can list.
func newOpenDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "forewarm-cli-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o711)) //nolint:gosec // as above
	return dir
}

// newAttachedTower is a tower whose node can be used.
func newAttachedTower(t *testing.T) *town {
	t.Helper()
	w := newTower(t)
	w.dir = t.TempDir()
	w.attachDaemons("heron")
	return w
}

func TestExec(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	uuid := w.mustRun("allocations", "show", "heron", "--jq", ".devices[0].uuid")
	w.stdin = "from here\n"
	out, errs, code := w.runCommand("exec", "heron", "--env", "SEED=7", "--", "sh", "-c",
		`cat; echo "$CUDA_VISIBLE_DEVICES $SEED $1"; echo wrong >&2; exit 42`, "sh", "it's $HOME")
	require.Equal(t, 42, code)
	require.Equal(t, "from here\n"+uuid+" 7 it's $HOME\n", out)
	require.Equal(t, "wrong\n", errs, "nothing of ours is among what the command says")
	w.stdin = ""

	_, errs, code = w.runCommand("exec", "heron", "--dir", "/no/such/folder", "--", "pwd")
	require.Equal(t, 127, code)
	require.Contains(t, errs, "starting pwd in the folder /no/such/folder: no such file or directory")
	_, errs, code = w.runCommand("exec", "heron", "--", "no-such-program")
	require.Equal(t, 127, code)
	require.Contains(t, errs, "no such program")
	require.Regexp(t, `(?m)^Next:  forewarm exec alc_\w+\n  or:  forewarm exec alc_\w+ --env `+
		`PATH=/opt/venv/bin:/usr/bin:/bin -- no-such-program$`, errs)
	out = w.mustRun("exec", "heron", "-t", "--", "tty")
	require.Regexp(t, `^/dev/(pts/\d+|console)`, out)
	for _, wrong := range [][]string{{"exec", "heron", "hostname"}, {"exec", "heron", "--env", "=1", "--", "true"},
		{"port", "heron", "http"}, {"port", "heron", "0"}, {"cp", "a", "b"}, {"cp", "heron:a", "heron:b"}} {
		_, _, code := w.runCommand(wrong...)
		require.Equal(t, exit.Usage, code, wrong)
	}
	_, errs, code = w.runCommand("exec", "heron", "--node", "1", "--", "true")
	require.Equal(t, exit.Usage, code, errs)
}

// A server that is stopped while a command runs says so, and its user where to look.
func TestExecWhileTheServerStops(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	said, write := io.Pipe()
	var errs bytes.Buffer
	root := w.newRoot()
	root.SetArgs([]string{"exec", "heron", "--", "sh", "-c", "echo up; exec sleep 1000"})
	root.SetOut(write)
	root.SetErr(&errs)
	root.SetIn(strings.NewReader(""))
	ended := make(chan int, 1)
	go func() { ended <- Execute(t.Context(), root) }()
	_, err := io.ReadFull(said, make([]byte, 3))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, w.server.Run(ctx))
	require.Equal(t, exit.Failed, <-ended)
	require.Regexp(t, `^forewarm: the connection was cut; the command goes on, and is come back to for up to 1m\n`+
		`Error: the control plane was stopped\nNext:  forewarm status\n`+
		`  or:  forewarm allocations show alc_\w+\n  or:  forewarm exec alc_\w+ -- ps -ef\n$`, errs.String())
}

// What is not in reach says so, and what to do.
func TestExecWithoutADaemon(t *testing.T) {
	t.Parallel()
	w := newTower(t)
	_, errs, code := w.runCommand("exec", "heron", "--", "true")
	require.Equal(t, exit.Conflict, code, errs)
	require.Contains(t, errs, "No daemon of node nod_")
	require.Contains(t, errs, "forewarm nodes show nod_")
}

func TestCopy(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	at := func(name string) string { return filepath.Join(w.dir, name) }
	require.NoError(t, os.MkdirAll(at("tree/deep/empty"), 0o755))
	require.NoError(t, os.WriteFile(at("tree/deep/run.sh"), []byte("#!/bin/sh\necho ran\n"), 0o700))
	require.NoError(t, os.WriteFile(at("tree/big"), []byte(strings.Repeat("0123456789", 200_000)), 0o600))
	require.NoError(t, os.Symlink("big", at("tree/link")))

	w.mustRun("cp", at("tree"), "heron:work")
	require.Equal(t, "ran", w.mustRun("exec", "heron", "--", "work/deep/run.sh"))
	w.mustRun("cp", at("tree/big"), "heron:work") // a folder that is there: into it
	w.mustRun("cp", at("tree/big"), "heron:new/")
	require.Equal(t, "2000000 new/big\n2000000 work/big\n4000000 total",
		w.mustRun("exec", "heron", "--", "sh", "-c", "wc -c new/big work/big | sed 's/^ *//'"))

	w.mustRun("cp", "heron:", at("whole")) // what is in a folder, into one that is new
	require.FileExists(t, at("whole/new/big"))
	w.mustRun("cp", "heron:work", at("back"))
	for _, name := range []string{"deep/run.sh", "big", "link"} {
		want, err := os.ReadFile(at("tree/" + name))
		require.NoError(t, err)
		got, err := os.ReadFile(at("back/" + name))
		require.NoError(t, err)
		require.True(t, string(want) == string(got), name)
	}
	info, err := os.Stat(at("back/deep/run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	target, err := os.Readlink(at("back/link"))
	require.NoError(t, err)
	require.Equal(t, "big", target)
	w.mustRun("cp", "heron:work/big", at("back/deep"))
	require.FileExists(t, at("back/deep/big"))

	w.mustRun("cp", "heron:work/big", at("fresh")+"/")
	require.FileExists(t, at("fresh/big"))
	w.mustRun("exec", "heron", "--", "sh", "-c", "echo kept > work/mine; echo old > work/deep/run.sh; mkdir -p full/big")
	w.mustRun("exec", "heron", "--", "mv", "work", "tree")
	w.mustRun("cp", at("tree"), "heron:.") // a folder that is there is filled
	require.Equal(t, "kept\nran", w.mustRun("exec", "heron", "--", "sh", "-c", "cat tree/mine; tree/deep/run.sh"))
	w.mustRun("exec", "heron", "--", "mv", "tree", "work")
	_, errs, code := w.runCommand("cp", at("tree/big"), "heron:full")
	require.Equal(t, exit.Failed, code)
	require.Contains(t, errs, "big is a folder, and is not replaced")
	_, errs, code = w.runCommand("cp", at("tree"), "heron:work/big")
	require.Equal(t, exit.Conflict, code)
	require.Contains(t, errs, "no folder: a folder cannot replace it")
	_, errs, code = w.runCommand("cp", "heron:nothing", at("back"))
	require.NotZero(t, code)
	require.Contains(t, errs, "nothing")
	_, _, code = w.runCommand("cp", at("nothing"), "heron:x")
	require.NotZero(t, code)
}

// What is neither file nor folder is refused: there and back again.
func TestCopyOfAPipe(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	pipe := filepath.Join(w.dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, named := range []string{pipe, "/dev/zero"} {
		_, errs, code := w.runCommand("cp", named, "heron:x")
		require.Equal(t, exit.Usage, code)
		require.Contains(t, errs, "Error: "+named+" is neither file nor folder: it is not copied\nNext:  forewarm exec alc_")
	}
	w.mustRun("exec", "heron", "--", "mkfifo", "pipe")
	_, errs, code := w.runCommand("cp", "heron:pipe", w.dir)
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "Error: pipe is neither file nor folder: it is not copied\n")

	w.mustRun("exec", "heron", "--", "sh", "-c", "echo text > file")
	_, errs, code = w.runCommand("cp", "heron:file", pipe)
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "pipe is neither file nor folder: it is not replaced\nNext:  forewarm exec alc_")
	info, err := os.Stat(pipe)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
	local := filepath.Join(w.dir, "local")
	require.NoError(t, os.WriteFile(local, []byte("text\n"), 0o600))
	_, errs, code = w.runCommand("cp", local, "heron:pipe")
	require.NotZero(t, code)
	require.Contains(t, errs, "pipe is neither file nor folder, and is not replaced")

	link := filepath.Join(w.dir, "link")
	require.NoError(t, os.Symlink("local", link))
	w.mustRun("exec", "heron", "--", "sh", "-c", "echo new > file")
	w.mustRun("cp", "heron:file", link) // the file is replaced, not the link
	got, err := os.ReadFile(local)
	require.NoError(t, err)
	require.Equal(t, "new\n", string(got))
}

// What was interrupted on its way to a node leaves nothing there, and what it was to replace stays.
func TestAnInterruptedCopyLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	endless := filepath.Join(w.dir, "endless")
	require.NoError(t, os.WriteFile(endless, nil, 0o600))
	require.NoError(t, os.Truncate(endless, 1<<36))
	w.mustRun("exec", "heron", "--", "sh", "-c", "mkdir work; echo old > work/endless")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		_, _, code := w.runWithContext(ctx, "cp", endless, "heron:work")
		ended <- code
	}()
	parts := func() string { return w.mustRun("exec", "heron", "--", "sh", "-c", "ls -A work") }
	require.Eventually(t, func() bool { return strings.Contains(parts(), ".forewarm-part.") }, 2*time.Minute,
		10*time.Millisecond)
	cancel()
	require.Equal(t, exit.Interrupt, <-ended)
	require.Eventually(t, func() bool { return parts() == "endless" }, 2*time.Minute, 10*time.Millisecond)
	require.Equal(t, "old", w.mustRun("exec", "heron", "--", "cat", "work/endless"))
}

func TestPort(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	l := worktest.ListenAs(t, w.mustRun("exec", "heron", "--", "id", "-u"))
	served := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s is here", r.URL.Path)
	}), ReadHeaderTimeout: time.Minute}
	go func() { _ = served.Serve(l) }()
	t.Cleanup(func() { _ = served.Close() })

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, write := io.Pipe()
	root := w.newRoot()
	root.SetArgs([]string{"port", "heron", fmt.Sprintf("0:%d", l.Addr().(*net.TCPAddr).Port)})
	root.SetOut(write)
	root.SetErr(io.Discard)
	ended := make(chan int, 1)
	go func() { ended <- Execute(ctx, root) }()
	line := make([]byte, 200)
	n, err := said.Read(line)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, said) }()
	address, _, _ := strings.Cut(string(line[:n]), " ")
	for _, path := range []string{"/one", "/two"} {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + path)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, path+" is here", string(body))
	}
	cancel()
	require.Zero(t, <-ended)
}

// Once the allocation is over, nothing listens for it any more.
func TestPortOfAnAllocationThatIsOver(t *testing.T) {
	t.Parallel()
	w := newAttachedTower(t)
	said, write := io.Pipe()
	var told bytes.Buffer
	root := w.newRoot()
	root.SetArgs([]string{"port", "heron", "0:9"})
	root.SetOut(write)
	root.SetErr(&told)
	ended := make(chan int, 1)
	go func() { ended <- Execute(t.Context(), root) }()
	line := make([]byte, 200)
	n, err := said.Read(line)
	require.NoError(t, err)
	address, _, _ := strings.Cut(string(line[:n]), " ")
	w.mustRun("release", "heron")
	if conn, err := net.Dial("tcp", address); err == nil { // else the events have told it before
		defer func() { _ = conn.Close() }()
	}
	require.Equal(t, exit.Conflict, <-ended)
	require.Contains(t, told.String(), "released")
}
