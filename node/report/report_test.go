package report_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/health"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/report"
	"github.com/forewarm/forewarm/node/watch"
)

var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// played is a control plane: what it was asked, and what it answers next.
type played struct {
	asked  []string // method, last part of the path and key
	beats  []contract.Heartbeat
	fail   *contract.Problem
	failed map[string]*contract.Problem // by key
	broken bool
	clears int
	keys   int
	said   contract.HeartbeatAnswer // beside those
}

func (p *played) Do(r *http.Request) (*http.Response, error) {
	parts := strings.Split(r.URL.Path, "/")
	what := parts[len(parts)-1]
	p.asked = append(p.asked, what+" "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	if p.broken {
		return nil, io.ErrUnexpectedEOF
	}
	if p.fail != nil {
		return answer(p.fail.Status, p.fail), nil
	}
	if no := p.failed[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]; no != nil {
		return answer(no.Status, no), nil
	}
	if what == "heartbeat" {
		var b contract.Heartbeat
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			return nil, err
		}
		p.beats = append(p.beats, b)
		said := p.said
		said.Clears, said.HeartbeatSeconds = p.clears, 10
		return answer(200, said), nil
	}
	p.keys++
	return answer(200, contract.NodeJoined{NodeID: "nod_1", Key: "key" + string(rune('0'+p.keys)),
		ExpiresInSeconds: 86_400, HeartbeatSeconds: 10}), nil
}

func answer(status int, body any) *http.Response {
	text, _ := json.Marshal(body)
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(string(text))),
		Header: http.Header{"Content-Type": {"application/json"}}, Request: &http.Request{}}
}

// daemon is a reporter over simulated GPUs.
type daemon struct {
	*testing.T
	dir    string
	server *played
	now    time.Time
	// lookEvery and reportEvery are the reporter's.
	lookEvery, reportEvery time.Duration
	source                 gpu.Source // nil: simulated GPUs
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	return &daemon{T: t, dir: filepath.Join(t.TempDir(), "state"), server: &played{}, now: begin}
}

func (d *daemon) start(token string) (*report.Reporter, error) {
	state, err := report.OpenState(d.dir)
	require.NoError(d, err)
	source := d.source
	if source == nil {
		source = &gpu.Simulated{Seed: "x", Count: 2, MemoryMiB: 1000}
	}
	w := watch.New(source, nil, health.Policy{}, state.Health().For("boot"))
	return report.New(report.Config{URL: "http://control.plane", NodeID: "nod_1", Token: obs.NewSecret(token),
		Version: "1", BootID: "boot", Epoch: 7,
		LookEvery: d.lookEvery, ReportEvery: d.reportEvery, HTTP: d.server, Log: slog.New(slog.DiscardHandler)}, w, state)
}

// step does one step, and lets the time pass until the next one is due.
func (d *daemon) step(r *report.Reporter) (time.Duration, error) {
	next, err := r.Step(context.Background(), d.now)
	wait := next.Sub(d.now)
	d.now = next
	return wait, err
}

func (d *daemon) mustStep(r *report.Reporter) time.Duration {
	d.Helper()
	wait, err := d.step(r)
	require.NoError(d, err)
	return wait
}

func TestADaemonJoinsReportsAndRenews(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, d.mustStep(r))
	d.mustStep(r)
	require.Equal(t, []string{"join token", "heartbeat key1", "heartbeat key1"}, d.server.asked)
	first, second := d.server.beats[0], d.server.beats[1]
	require.Equal(t, []int64{1, 2}, []int64{first.Seq, second.Seq})
	require.Equal(t, int64(7), first.Epoch)
	require.Len(t, first.Look.GPUs, 2)
	state, err := report.OpenState(d.dir)
	require.NoError(t, err)
	welcome, err := state.Welcomed()
	require.NoError(t, err)
	require.Equal(t, report.Welcome{Version: "1", BootID: "boot", Epoch: 7}, welcome)
	d.now = begin.Add(12*time.Hour - time.Second)
	d.mustStep(r)
	d.now = begin.Add(12 * time.Hour).Add(10 * time.Second)
	d.mustStep(r)
	d.mustStep(r)
	require.Equal(t, []string{"heartbeat key1", "renew key1", "heartbeat key2"}, d.server.asked[4:])

	d.server.asked = nil
	d.now = begin.AddDate(-3, 0, 0) // the clock is wrong after a restart
	r, err = d.start("")
	require.NoError(t, err)
	d.mustStep(r)
	d.mustStep(r)
	require.Equal(t, []string{"heartbeat key2", "renew key2", "heartbeat key3"}, d.server.asked,
		"it needs no token, and cannot know how old its key is")
	info, err := os.Stat(filepath.Join(d.dir, "identity.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// The server is away: looks go on, the newest is sent, and tries are ever further apart.
func TestAServerThatIsAway(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.mustStep(r)
	d.server.broken, d.server.asked = true, nil
	for d.now.Before(begin.Add(5 * time.Minute)) {
		require.LessOrEqual(t, d.mustStep(r), 10*time.Second)
	}
	tries := len(d.server.asked)
	require.InDelta(t, 8, tries, 3, "after 5, 10, 20, 40 and then each 60 seconds")
	d.server.broken = false
	for len(d.server.beats) == 1 {
		d.mustStep(r)
	}
	require.Less(t, d.now.Sub(d.server.beats[1].SentAt), 11*time.Second, "it is the newest look that is told")
	d.server.fail = &contract.Problem{Code: contract.CodeRateLimited, Status: 429, RetryAfter: 120}
	d.mustStep(r)
	failed, asked := d.now, len(d.server.asked)
	for len(d.server.asked) == asked || d.now.Before(failed) {
		d.mustStep(r)
	}
	require.GreaterOrEqual(t, d.now.Sub(failed), 100*time.Second, "as long as the server asked")
}

func TestRefusalsAreFinal(t *testing.T) {
	t.Parallel()
	for _, code := range []string{contract.CodeDaemonRefused, contract.CodeUnauthenticated,
		contract.CodePermissionDenied} {
		d := newDaemon(t)
		r, err := d.start("token")
		require.NoError(t, err)
		p := contract.NewProblem(code, "no")
		d.server.fail = &p
		_, err = d.step(r)
		var refused *report.RefusedError
		require.ErrorAs(t, err, &refused, code)
	}
}

// What a proxy in between says is no word of the control plane.
func TestAProxysRefusalIsNotFinal(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.mustStep(r)
	d.server.fail = &contract.Problem{Status: 403}
	d.mustStep(r)
	d.server.fail = nil
	d.mustStep(r)
}

// A key that is refused is given up for a token, if there is one.
func TestADaemonJoinsAnew(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.mustStep(r)
	require.NoError(t, os.RemoveAll(d.dir)) // its state is lost
	_, err = d.start("")
	require.ErrorContains(t, err, "forewarm nodes join nod_1")
	r, err = d.start("another")
	require.NoError(t, err)
	d.server.asked = nil
	d.mustStep(r)
	require.Equal(t, "join another", d.server.asked[0])
	require.NoError(t, os.Chmod(d.dir, 0o755)) //nolint:gosec // what must be refused
	_, err = report.OpenState(d.dir)
	require.ErrorContains(t, err, "chmod 700")
}

// The disk is full: the token is not spent on a key that would be lost, and a daemon that
// has its key goes on and says so.
func TestAStateThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	block := func() { // as root, modes do not keep anybody from writing
		require.NoError(t, os.RemoveAll(d.dir))
		require.NoError(t, os.WriteFile(d.dir, nil, 0o600))
	}
	block()
	d.mustStep(r)
	require.Empty(t, d.server.asked)
	require.NoError(t, os.Remove(d.dir))
	for len(d.server.beats) == 0 {
		d.mustStep(r)
	}
	require.Equal(t, "join token", d.server.asked[0])
	block()
	d.server.clears = 1 // something new is to be kept
	d.mustStep(r)
	d.mustStep(r)
	d.mustStep(r)
	require.Contains(t, d.server.beats[len(d.server.beats)-1].Look.Problem, "the state folder cannot be written")
}

// A report that the server asked for says so, once it has arrived.
func TestAReportThatWasAskedForSaysSo(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.mustStep(r)
	r.Ask()
	d.server.broken = true
	d.mustStep(r)
	d.server.broken = false
	d.mustStep(r)
	d.mustStep(r)
	var asked []bool
	for _, b := range d.server.beats {
		asked = append(asked, b.Asked)
	}
	require.Equal(t, []bool{false, true, false}, asked)
}

// A daemon that comes again in the place of a later version goes on with what it knows of that one's files.
func TestAnEarlierVersionReadsWhatALaterOneWrote(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.server.clears = 3
	d.mustStep(r)
	d.mustStep(r)
	all, err := filepath.Glob(filepath.Join(d.dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, path := range all {
		text, err := os.ReadFile(path) //nolint:gosec // the test's own
		require.NoError(t, err)
		require.NotContains(t, string(text), `"xids"`, "there are none, and a version before them would not know the name")
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "{", `{"later":1,`, 1)), 0o600))
	}
	state, err := report.OpenState(d.dir)
	require.NoError(t, err)
	require.Equal(t, 3, state.Health().Clears)
	w, err := state.Welcomed()
	require.NoError(t, err)
	require.Equal(t, int64(7), w.Epoch)
	id, err := state.Identity("nod_1")
	require.NoError(t, err)
	require.Equal(t, "key1", id.Key)
}

// What happens within a moment is told together: however many short jobs there are, the reports are not more than the
// server takes, and none waits for longer than that moment.
func TestReportsAreCounted(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.mustStep(r)
	d.now, d.server.beats = begin.Add(5*time.Second), nil
	from := d.now
	for d.now.Before(from.Add(time.Second)) {
		r.Hurry()
		next, err := r.Step(context.Background(), d.now)
		require.NoError(t, err)
		require.LessOrEqual(t, next.Sub(d.now), 10*time.Second)
		d.now = d.now.Add(time.Millisecond)
	}
	require.Len(t, d.server.beats, 40)
	r.Hurry()
	_, err = r.Step(context.Background(), d.now)
	require.NoError(t, err)
	require.Len(t, d.server.beats, 41, "a moment is over")
	r.Hurry()
	next, err := r.Step(context.Background(), d.now.Add(time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, d.now.Add(25*time.Millisecond), next, "what comes within the next is told with its end")
}

// A server that was sent too much says when it goes on, and is told what there is then, at once.
func TestWhoIsToldToSlowDownDoesNotFallSilent(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	r, err := d.start("token")
	require.NoError(t, err)
	d.mustStep(r)
	for range 5 {
		d.server.fail = &contract.Problem{Code: contract.CodeRateLimited, Status: 429, RetryAfter: 1}
		d.now, d.server.beats = d.now.Add(time.Second), nil
		r.Hurry()
		failed := d.now
		d.mustStep(r)
		d.server.fail = nil
		for len(d.server.beats) == 0 {
			r.Hurry()
			d.mustStep(r)
		}
		require.LessOrEqual(t, d.server.beats[0].SentAt.Sub(failed), 1600*time.Millisecond)
		require.GreaterOrEqual(t, d.server.beats[0].SentAt.Sub(failed), time.Second)
	}
}
