package egress_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// site is a server that counts its visitors.
type site struct {
	*httptest.Server
	visits atomic.Int64
}

func newSite(t *testing.T, answer http.HandlerFunc) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.visits.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func newEgress(t *testing.T, c egress.Config) *egress.Egress {
	t.Helper()
	if c.Clock == nil {
		c.Clock = clock.NewManual(time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC))
	}
	e, err := egress.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func postBody(t *testing.T, c *http.Client, url, body string) (string, error) {
	t.Helper()
	resp, err := c.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestEachClientReachesItsOwnDestinationOnly(t *testing.T) {
	t.Parallel()
	control, model, other := newSite(t, echo), newSite(t, echo), newSite(t, echo)
	e := newEgress(t, egress.Config{ControlPlane: control.URL + "/base", Model: model.URL})
	got, err := postBody(t, e.ControlPlane(), control.URL+"/v1/x", "hello")
	require.NoError(t, err)
	require.Equal(t, "hello", got)
	got, err = postBody(t, e.Model(), model.URL+"/chat", "hi")
	require.NoError(t, err)
	require.Equal(t, "hi", got)

	port := control.URL[strings.LastIndex(control.URL, ":"):]
	for _, url := range []string{
		other.URL, model.URL, "https://127.0.0.1" + port, "http://localhost" + port, "http://127.0.0.2" + port,
		"http://127.0.0.1", "http://example.com" + port, "http://u:p@127.0.0.1" + port,
	} {
		_, err := postBody(t, e.ControlPlane(), url, "secret")
		var refused *egress.RefusedError
		require.ErrorAs(t, err, &refused, url)
		require.NotContains(t, refused.Error(), "u:p")
	}
	require.Zero(t, other.visits.Load())
	require.EqualValues(t, 1, control.visits.Load())
	require.EqualValues(t, 1, model.visits.Load())
	require.Equal(t, egress.Totals{Requests: 1, Out: 5, In: 5}, e.Totals(egress.ControlPlane))
	require.Equal(t, egress.Totals{Requests: 1, Out: 2, In: 2}, e.Totals(egress.Model))
}

func TestAnotherHostHeaderIsRefused(t *testing.T) {
	t.Parallel()
	control := newSite(t, echo)
	e := newEgress(t, egress.Config{ControlPlane: control.URL})
	req, err := http.NewRequest(http.MethodGet, control.URL, nil)
	require.NoError(t, err)
	req.Host = "elsewhere.example"
	_, err = e.ControlPlane().Do(req)
	var refused *egress.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Zero(t, control.visits.Load())
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := newSite(t, echo)
	control := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	e := newEgress(t, egress.Config{ControlPlane: control.URL})
	_, err := postBody(t, e.ControlPlane(), control.URL, "body")
	require.ErrorContains(t, err, "redirects are not followed")
	require.Zero(t, other.visits.Load())
	require.EqualValues(t, 1, control.visits.Load())
}

func TestNoProxyIsTakenFromTheEnvironment(t *testing.T) {
	proxy := newSite(t, echo)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("ALL_PROXY", proxy.URL)
	control := newSite(t, echo)
	e := newEgress(t, egress.Config{ControlPlane: control.URL, Model: "https://model.invalid:1"})
	_, err := postBody(t, e.ControlPlane(), control.URL, "x")
	require.NoError(t, err)
	_, err = postBody(t, e.Model(), "https://model.invalid:1", "x")
	require.Error(t, err)
	require.Zero(t, proxy.visits.Load())
}

func TestBadDestinationsAreRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "forewarm.example", "http://forewarm.example", "ftp://127.0.0.1", "https://u:pass@forewarm.example",
		"https://forewarm.example?key=pass", "https://forewarm.example#pass", "http://127.0.0.1.example.com",
		"https://",
	} {
		_, err := egress.New(egress.Config{ControlPlane: bad})
		require.ErrorContains(t, err, "control plane URL", bad)
		require.NotContains(t, err.Error(), "pass", bad)
	}
	_, err := egress.New(egress.Config{ControlPlane: "https://a.example", Model: "http://b.example"})
	require.ErrorContains(t, err, "model URL")
	for _, good := range []string{"https://a.example", "https://a.example:8443/base", "http://localhost:1",
		"http://[::1]:1"} {
		e := newEgress(t, egress.Config{ControlPlane: good})
		require.Nil(t, e.Model())
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	control := newSite(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 5000)) })
	e := newEgress(t, egress.Config{ControlPlane: control.URL, MaxRequest: 10, MaxResponse: 4999})
	_, err := postBody(t, e.ControlPlane(), control.URL, "12345678901")
	var large *egress.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, "request", large.What)
	require.Zero(t, control.visits.Load())
	_, err = postBody(t, e.ControlPlane(), control.URL, "1234567890")
	require.ErrorAs(t, err, &large)
	require.Equal(t, "response", large.What)
}

// memory is a transport that stays in this process.
type memory func(*http.Request) *http.Response

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) { return m(r), nil }

func TestTheSimulatorsTransportIsGuardedToo(t *testing.T) {
	t.Parallel()
	calls := 0
	e := newEgress(t, egress.Config{ControlPlane: "http://localhost:1",
		Transport: memory(func(r *http.Request) *http.Response {
			calls++
			return &http.Response{StatusCode: 204, Body: http.NoBody, Request: r}
		})})
	_, err := postBody(t, e.ControlPlane(), "http://localhost:1/x", "abc")
	require.NoError(t, err)
	_, err = postBody(t, e.ControlPlane(), "http://localhost:2/x", "abc")
	require.Error(t, err)
	require.Equal(t, 1, calls)
}

func TestEveryRequestIsInTheLog(t *testing.T) {
	t.Parallel()
	control := newSite(t, echo)
	path := filepath.Join(t.TempDir(), "egress.jsonl")
	e := newEgress(t, egress.Config{ControlPlane: control.URL, Ledger: path})
	_, err := postBody(t, e.ControlPlane(), control.URL+"/v1/x?token=hunter22", "hello")
	require.NoError(t, err)
	require.NoError(t, e.Close())

	last, err := egress.Verify(path)
	require.NoError(t, err)
	require.EqualValues(t, 2, last.Seq)
	hello := sha256.Sum256([]byte("hello"))
	require.Equal(t, hex.EncodeToString(hello[:]), last.Body)
	require.Equal(t, egress.Received, last.Event)
	require.EqualValues(t, 5, last.In)
	require.Equal(t, 200, last.Status)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `"kind":"control_plane","method":"POST","path":"/v1/x","out":5`)
	require.NotContains(t, string(text), "hunter22")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	_, err = postBody(t, e.ControlPlane(), control.URL, "after")
	require.ErrorContains(t, err, "not sending what cannot be logged")
	require.EqualValues(t, 1, control.visits.Load())
}

func writeLog(t *testing.T, n int) (path string, lines [][]byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "egress.jsonl")
	l, err := egress.OpenLedger(path)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, l.Append(egress.Entry{Kind: egress.Model, Out: int64(i), Path: "/v1"}))
	}
	require.NoError(t, l.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, bytes.SplitAfter(text, []byte("\n"))[:n]
}

func TestABreakInTheChainIsDetected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func([][]byte) [][]byte
		line int64
	}{
		"changed": {func(l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte(`"out":2`), []byte(`"out":0`), 1)
			return l
		}, 3},
		"removed":   {func(l [][]byte) [][]byte { return append(l[:1], l[2:]...) }, 2},
		"swapped":   {func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }, 2},
		"repeated":  {func(l [][]byte) [][]byte { return append(l, l[3]) }, 5},
		"cut short": {func(l [][]byte) [][]byte { return l[:2] }, 3},
		"emptied":   {func(l [][]byte) [][]byte { return nil }, 1},
		"first cut": {func(l [][]byte) [][]byte { return l[1:] }, 1},
		"not json":  {func(l [][]byte) [][]byte { l[1] = []byte("x\n"); return l }, 2},
		"blank":     {func(l [][]byte) [][]byte { l[1] = append([]byte("\n"), l[1]...); return l }, 2},
		"spaces":    {func(l [][]byte) [][]byte { l[1] = append([]byte(" "), l[1]...); return l }, 2},
		"long line": {func(l [][]byte) [][]byte { l[0] = bytes.Repeat([]byte("x"), 1<<20); return l }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, lines := writeLog(t, 4)
			require.NoError(t, os.WriteFile(path, bytes.Join(c.edit(lines), nil), 0o600))
			_, err := egress.Verify(path)
			var broken *egress.ChainError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, c.line, broken.Line)
			_, err = egress.New(egress.Config{ControlPlane: "https://a.example", Ledger: path})
			require.ErrorAs(t, err, &broken)
		})
	}
}

// A log in which nothing was entered is sound, whether it is there or not; one that is gone is not.
func TestNothingSentVerifies(t *testing.T) {
	t.Parallel()
	path, _ := writeLog(t, 0)
	last, err := egress.Verify(path)
	require.NoError(t, err)
	require.Zero(t, last.Seq)
	require.NoError(t, os.Remove(path))
	_, err = egress.Verify(path)
	require.NoError(t, err)

	path, _ = writeLog(t, 2)
	require.NoError(t, os.Remove(path))
	var broken *egress.ChainError
	for range 2 { // that an agent has tried to start changes nothing
		_, err = egress.Verify(path)
		require.ErrorAs(t, err, &broken)
		require.ErrorContains(t, err, "line 1: it and what followed are missing: 2 entries were written")
		_, err = egress.OpenLedger(path)
		require.ErrorAs(t, err, &broken)
	}
}

// Who writes a whole new chain is found out by the note of the old one; a note that a crash left one entry behind is no
// fault, and one that was changed is.
func TestTheNoteOfTheLastEntry(t *testing.T) {
	t.Parallel()
	path, lines := writeLog(t, 3)
	note, err := os.ReadFile(path + ".head")
	require.NoError(t, err)
	other, _ := writeLog(t, 4)
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	forged := bytes.ReplaceAll(text, []byte(`"out":0`), []byte(`"out":9`))
	require.NotEqual(t, text, forged)
	require.NoError(t, os.WriteFile(path, chainAgain(t, forged), 0o600))
	_, err = egress.Verify(path)
	require.ErrorContains(t, err, "line 3: the entry is not the one that was written")

	require.NoError(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
	require.NoError(t, os.WriteFile(path+".head", bytes.Replace(note, []byte(`"seq":3`), []byte(`"seq":4`), 1), 0o600))
	_, err = egress.Verify(path)
	require.ErrorContains(t, err, "line 4: it and what followed are missing")
	require.NoError(t, os.WriteFile(path+".head", []byte("{}"), 0o600))
	_, err = egress.Verify(path)
	require.ErrorContains(t, err, "the note of the last entry was changed")

	var second egress.Entry
	require.NoError(t, json.Unmarshal(lines[1], &second))
	require.NoError(t, os.WriteFile(path+".head", fmt.Appendf(nil, `{"seq":2,"hash":%q}`, second.Hash), 0o600))
	_, err = egress.Verify(path)
	require.NoError(t, err)

	var first egress.Entry
	require.NoError(t, json.Unmarshal(lines[0], &first))
	require.NoError(t, os.WriteFile(path+".head", fmt.Appendf(nil, `{"seq":1,"hash":%q}`, first.Hash), 0o600))
	_, err = egress.Verify(path)
	require.ErrorContains(t, err, "notes entry 1 as the last: one of the two was replaced")
	require.NoError(t, os.Remove(path+".head"))
	_, err = egress.Verify(path)
	require.ErrorContains(t, err, path+".head, which notes the last one, is missing")
	_, err = egress.OpenLedger(path)
	require.ErrorContains(t, err, "is missing", "a new note would hide that lines were removed")
	require.NoError(t, os.WriteFile(path, lines[0], 0o600))
	_, err = egress.Verify(path)
	require.NoError(t, err, "a crash can come between the first entry and its note")
}

// chainAgain writes the entries of a log anew, as one who knows how.
func chainAgain(t *testing.T, text []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forged.jsonl")
	l, err := egress.OpenLedger(path)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var e egress.Entry
		require.NoError(t, json.Unmarshal(line, &e))
		require.NoError(t, l.Append(e))
	}
	require.NoError(t, l.Close())
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	return text
}

func TestALineCutByACrashIsRemovedAndTheChainGoesOn(t *testing.T) {
	t.Parallel()
	path, lines := writeLog(t, 3)
	require.NoError(t, os.WriteFile(path, append(bytes.Join(lines, nil), lines[0][:30]...), 0o600))
	_, err := egress.Verify(path)
	require.ErrorContains(t, err, "line 4: the last line is cut short")
	l, err := egress.OpenLedger(path)
	require.NoError(t, err)
	require.NoError(t, l.Append(egress.Entry{Kind: egress.ControlPlane}))
	require.NoError(t, l.Close())
	last, err := egress.Verify(path)
	require.NoError(t, err)
	require.EqualValues(t, 4, last.Seq)
}

func TestALogHasOneWriterAndIsNoLink(t *testing.T) {
	t.Parallel()
	path, _ := writeLog(t, 1)
	l, err := egress.OpenLedger(path)
	require.NoError(t, err)
	_, err = egress.OpenLedger(path)
	require.ErrorIs(t, err, egress.ErrInUse)
	require.NoError(t, l.Close())
	link := path + ".link"
	require.NoError(t, os.Symlink(path, link))
	_, err = egress.OpenLedger(link)
	require.Error(t, err)
}
