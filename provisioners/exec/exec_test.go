package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/exec"
)

const good = `{"id":"m-1","token":"token","owner":"dep","node_id":"nod_1","type":"big","phase":"running",` +
	`"address":"host",` +
	`"devices":[{"uuid":"GPU-1","index":0,"model":"h100","memory_mib":81920}],"created_at":"2026-03-02T09:00:00Z"}`

// shellProvisioner is a provisioner whose every verb runs the lines of sh.
func shellProvisioner(t *testing.T, lines string) provisioners.Provisioner {
	t.Helper()
	return openScripts(t, exec.Config{Command: []string{"/bin/sh", "-c", lines, "script"}, Renews: true})
}

// answeringProvisioner is one whose every verb gives the answer.
func answeringProvisioner(t *testing.T, answer string) provisioners.Provisioner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answer")
	require.NoError(t, os.WriteFile(path, []byte(answer), 0o600))
	return openScripts(t, exec.Config{Command: []string{"/bin/sh", "-c", `cat "$0"`, path}, Renews: true})
}

func testSpec() provisioners.Spec {
	return provisioners.Spec{Type: "big", Owner: "dep", NodeID: "nod_1"}
}

func requireKind(t *testing.T, want provisioners.Kind, err error, about string) {
	t.Helper()
	var typed *provisioners.Error
	require.ErrorAs(t, err, &typed, about)
	require.Equal(t, want, typed.Kind, "%s: %v", about, err)
}

// callAll makes every call and returns what each answered.
func callAll(t *testing.T, p provisioners.Provisioner) map[string]error {
	errs := map[string]error{}
	_, errs["create"] = p.Create(t.Context(), "token", testSpec())
	_, errs["get"] = p.Get(t.Context(), "m-1")
	_, errs["list"] = p.List(t.Context(), "dep")
	errs["delete"] = p.Delete(t.Context(), "m-1")
	_, errs["offers"] = p.Offers(t.Context())
	errs["renew"] = p.(provisioners.Renewer).Renew(t.Context(), "m-1", start)
	return errs
}

// doubtKind is what is known after an answer that is not understood.
func doubtKind(verb string) provisioners.Kind {
	switch verb {
	case "create", "delete", "renew":
		return provisioners.KindUnknown
	default:
		return provisioners.KindTransient
	}
}

func TestAnswersThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"", "done", "{", "[]", "{} {}", `{"instanse":{}}`, `{"instance":null,"extra":1}`,
		`{"error":{"kind":"sorry"}}`, `{"error":{"kind":"capacity"},"instance":` + good + `}`,
		`{"instance":` + good + `,"complete":true}`, `{"instance":{"id":"m-1"}}`,
		`{"instance":` + strings.Replace(good, "running", "happy", 1) + `}`,
		`{"instance":` + strings.Replace(good, `"address":"host"`, `"address":""`, 1) + `}`,
		`{"instance":` + strings.Replace(good, `"uuid":"GPU-1"`, `"uuid":""`, 1) + `}`,
		`{"instance":` + strings.Replace(good, `"index":0`, `"index":-1`, 1) + `}`,
		`{"instance":` + strings.Replace(good, `2026-03-02T09:00:00Z`, `yesterday`, 1) + `}`,
		`{"instance":` + strings.Replace(good, `"created_at"`, `"ended_at":"2026-03-02T08:00:00Z","created_at"`, 1) +
			`}`,
		`{"instance":` + strings.Replace(good, `"address"`, `"notice":{"kind":"gossip"},"address"`, 1) + `}`,
		`{"instance":` + strings.Replace(good, `"address"`, `"price":1,"address"`, 1) + `}`,
		`{"offers":[{"type":"a","model":"m","gpus":0}]}`,
		`{"offers":[{"type":"a","model":"m","gpus":1,"price_per_hour":"free"}]}`,
		`{"offers":[{"type":"a","model":"m","gpus":1},{"type":"a","model":"m","gpus":1}]}`,
		strings.Repeat(" ", 4<<20) + `{"instance":` + good + `}`,
	} {
		for verb, err := range callAll(t, answeringProvisioner(t, answer)) {
			requireKind(t, doubtKind(verb), err, fmt.Sprintf("%s: %.80s", verb, answer))
		}
	}
}

// A script that answers about something else is not believed: a machine with
// other tags would never be found again.
func TestAnswersAboutSomethingElse(t *testing.T) {
	t.Parallel()
	for _, other := range []string{`"m-1"`, `"token"`, `"dep"`, `"nod_1"`, `"big"`} {
		answer := `{"instance":` + strings.Replace(good, ":"+other, `:"other"`, 1) + `}`
		_, err := answeringProvisioner(t, answer).Create(t.Context(), "token", testSpec())
		if other == `"m-1"` { // a new id is news; somebody else's is not
			require.NoError(t, err)
			_, err = answeringProvisioner(t, answer).Get(t.Context(), "m-1")
			requireKind(t, provisioners.KindTransient, err, other)
			continue
		}
		requireKind(t, provisioners.KindUnknown, err, other)
	}
}

func TestOneGoodAnswer(t *testing.T) {
	t.Parallel()
	made, err := answeringProvisioner(t, `{"instance":`+good+`}`).Create(t.Context(), "token", testSpec())
	require.NoError(t, err)
	require.Equal(t, "host", made.Address)
	require.Len(t, made.Devices, 1)
	require.Equal(t, start, made.CreatedAt)

	ended := strings.Replace(good, `"running"`, `"terminated","ended_at":"2026-03-02T10:00:00+00:30"`, 1)
	got, err := answeringProvisioner(t, `{"instance":`+ended+`}`).Get(t.Context(), "m-1")
	require.NoError(t, err)
	require.Empty(t, got.Devices, "devices of a machine that is gone")
	require.Equal(t, start.Add(30*time.Minute), got.EndedAt)

	offers, err := answeringProvisioner(t, `{"offers":[{
		"type":"big","region":"r","model":"h100","gpus":8,"memory_mib":81920,"price_per_hour":"19.22",
		"min_billing_seconds":60,"boot_p50_seconds":90,"boot_p95_seconds":180,"interruptible":true,
		"notice_seconds":30}]}`).Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []provisioners.Offer{{
		Type: "big", Region: "r", Model: "h100", GPUs: 8, MemoryMiB: 81_920, Price: 19_220_000, MinBilling: time.Minute,
		Boot: provisioners.Boot{P50: 90 * time.Second, P95: 3 * time.Minute}, Interruptible: true,
		Notice: 30 * time.Second,
	}}, offers)
}

func TestRowsOfAList(t *testing.T) {
	t.Parallel()
	second := strings.Replace(good, "m-1", "m-2", 1)
	theirs := `{"id":"x","owner":"theirs"}`
	for name, test := range map[string]struct {
		rows     string
		complete bool
		found    int
	}{
		"all good":             {good + "," + second, true, 2},
		"theirs is dropped":    {good + "," + theirs, true, 1},
		"untagged is dropped":  {good + `,{"id":"x"}`, true, 1},
		"unknown field":        {good + `,{"id":"m-2","owner":"dep","color":"red"}`, false, 1},
		"ours without a token": {good + "," + strings.Replace(second, `"token":"token"`, `"token":""`, 1), false, 1},
		"no object":            {good + `,7`, false, 1},
		"the same id":          {good + "," + good, false, 1},
	} {
		list, err := answeringProvisioner(t, `{"instances":[`+test.rows+`],"complete":true}`).List(t.Context(), "dep")
		require.NoError(t, err, name)
		require.Equal(t, test.complete, list.Complete, name)
		require.Len(t, list.Instances, test.found, name)
	}
	for _, incomplete := range []string{`{"instances":[]}`, `{"instances":[],"complete":false}`} {
		list, err := answeringProvisioner(t, incomplete).List(t.Context(), "dep")
		require.NoError(t, err)
		require.False(t, list.Complete, incomplete)
	}
	_, err := answeringProvisioner(t, `{"instances":null,"complete":true}`).List(t.Context(), "dep")
	requireKind(t, provisioners.KindTransient, err, "no list at all")
}

func TestErrorsOfScripts(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"0", "3"} { // an error document counts whatever the exit code
		p := shellProvisioner(t,
			`echo '{"error":{"kind":"throttled","scope":"eu","message":"slow","retry_after_seconds":7}}'; exit `+code)
		for verb, err := range callAll(t, p) {
			var typed *provisioners.Error
			require.ErrorAs(t, err, &typed, verb)
			require.Equal(t, provisioners.Error{
				Kind: provisioners.KindThrottled, Scope: "eu", Message: "slow", RetryAfter: 7 * time.Second,
			}, *typed, verb)
		}
	}
	for verb, err := range callAll(t,
		shellProvisioner(t, `echo '{"instance":`+good+`}'; echo 'disk is full' >&2; exit 3`)) {
		want := provisioners.KindTransient
		if verb == "create" {
			want = provisioners.KindUnknown
		}
		requireKind(t, want, err, verb)
		require.ErrorContains(t, err, "disk is full")
		require.ErrorContains(t, err, "exit status 3")
	}
	notFound := callAll(t, answeringProvisioner(t, `{"error":{"kind":"not_found","message":"no"}}`))
	require.NoError(t, notFound["delete"], "gone is what was wanted")
	requireKind(t, provisioners.KindNotFound, notFound["get"], "get")
	requireKind(t, provisioners.KindNotFound, notFound["renew"], "renew")
	requireKind(t, provisioners.KindUnknown, notFound["create"], "create")
	requireKind(t, provisioners.KindTransient, notFound["list"], "list")
}

func TestLongErrorsAreCut(t *testing.T) {
	t.Parallel()
	p := shellProvisioner(t, `head -c 100000 /dev/zero | tr '\0' x >&2; echo the end >&2; exit 1`)
	_, err := p.Get(t.Context(), "m-1")
	require.ErrorContains(t, err, "the end")
	require.Less(t, len(err.Error()), 5_000)
}

func TestScriptThatIsNotThere(t *testing.T) {
	t.Parallel()
	p := openScripts(t, exec.Config{Command: []string{filepath.Join(t.TempDir(), "absent")}, Renews: true})
	for verb, err := range callAll(t, p) {
		requireKind(t, provisioners.KindTransient, err, verb)
		require.ErrorContains(t, err, "absent", verb)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	p := openScripts(t, exec.Config{
		Command: []string{"/bin/sleep", "1000"}, Commands: exec.Commands{Create: []string{"/bin/sleep", "1000"},
			Get: []string{"/bin/sleep", "1000"}},
		Timeout: 50 * time.Millisecond, Timeouts: exec.Timeouts{Get: 20 * time.Millisecond},
	})
	_, err := p.Create(t.Context(), "token", testSpec())
	requireKind(t, provisioners.KindUnknown, err, "create")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = p.Get(t.Context(), "m-1")
	requireKind(t, provisioners.KindTransient, err, "get")
	require.ErrorContains(t, err, "longer than 20ms")
}

// The script leaves a child behind that ignores the polite signal and keeps the
// pipe open. Both must be gone when the call returns.
func TestEndOfTheContextEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pids"), 0o600))
	p := openScripts(t, exec.Config{Command: []string{
		"/bin/sh", "-c",
		`cd "$0"; parent=$$; sh -c 'trap "" TERM; echo "$0 $$" >pids; while :; do sleep 1; done' $parent & wait`,
		folder,
	}})
	ctx, cancel := context.WithCancel(t.Context())
	pids := make(chan string)
	go func() {
		text, _ := os.ReadFile(filepath.Join(folder, "pids"))
		cancel()
		pids <- string(text)
	}()
	_, err := p.Create(ctx, "token", testSpec())
	requireKind(t, provisioners.KindUnknown, err, "create")
	require.ErrorIs(t, err, context.Canceled)
	var parent, child int
	_, err = fmt.Sscan(<-pids, &parent, &child)
	require.NoError(t, err)
	requireDead(t, parent)
	requireDead(t, child)
}

// requireDead allows for a process that is killed and not yet reaped by init.
func requireDead(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ")
	}, time.Minute, 10*time.Millisecond, "process %d lives", pid)
}

// With one slot a second call waits for the first, and gives up without having
// started anything.
func TestParallelIsTheLimit(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"started", "go on"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(folder, name), 0o600))
	}
	p := openScripts(t, exec.Config{
		Parallel: 1, Command: []string{"/bin/sh", "-c", `echo x >"$0/started"; cat "$0/go on" >/dev/null; echo '{}'`,
			folder},
	})
	ended := make(chan error)
	go func() { ended <- p.Delete(t.Context(), "m-1") }()
	_, err := os.ReadFile(filepath.Join(folder, "started"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = p.Create(ctx, "token", testSpec())
	requireKind(t, provisioners.KindTransient, err, "nothing was started")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go on"), nil, 0o600))
	require.NoError(t, <-ended)
}

func TestScriptsGetLittleOfOurEnvironment(t *testing.T) {
	t.Setenv("FOREWARM_TEST_SECRET", "hidden")
	t.Setenv("FOREWARM_TEST_GIVEN", "given")
	folder := t.TempDir()
	p := openScripts(t, exec.Config{
		Command: []string{"/bin/sh", "-c", `env >"$0/env"; pwd >"$0/pwd"; cat >"$0/question"; echo '{}'`, folder},
		Env:     []string{"FOREWARM_TEST_GIVEN", "FOREWARM_TEST_UNSET"}, Dir: folder,
	})
	require.NoError(t, p.Delete(t.Context(), "m-1"))
	env, err := os.ReadFile(filepath.Join(folder, "env"))
	require.NoError(t, err)
	require.Contains(t, string(env), "FOREWARM_TEST_GIVEN=given")
	require.Contains(t, string(env), "PATH=")
	require.NotContains(t, string(env), "FOREWARM_TEST_SECRET")
	require.NotContains(t, string(env), "FOREWARM_TEST_UNSET")
	require.NotContains(t, string(env), "GOFLAGS")
	pwd, err := os.ReadFile(filepath.Join(folder, "pwd"))
	require.NoError(t, err)
	require.Equal(t, folder+"\n", string(pwd))
	question, err := os.ReadFile(filepath.Join(folder, "question"))
	require.NoError(t, err)
	require.JSONEq(t, `{"version":1,"verb":"delete","id":"m-1"}`, string(question))
}

// An end of its own is given only to a machine that somebody will renew.
func TestExpiryNeedsRenewing(t *testing.T) {
	t.Parallel()
	for _, renews := range []bool{true, false} {
		folder := t.TempDir()
		p := openScripts(t, exec.Config{
			Command: []string{"/bin/sh", "-c", `cat >"$0/question"; exit 1`, folder}, Renews: renews,
		})
		_, is := p.(provisioners.Renewer)
		require.Equal(t, renews, is)
		expiring := testSpec()
		expiring.ExpiresAt = start
		_, err := p.Create(t.Context(), "token", expiring)
		require.Error(t, err)
		question, err := os.ReadFile(filepath.Join(folder, "question"))
		require.NoError(t, err)
		require.Equal(t, renews, strings.Contains(string(question), `"expires_at":"2026-03-02T09:00:00Z"`),
			string(question))
	}
}

// Scripts that start daemons are told what these need to join, and others are not.
func TestScriptsThatStartDaemons(t *testing.T) {
	t.Parallel()
	for _, starts := range []bool{true, false} {
		folder := t.TempDir()
		p := openScripts(t, exec.Config{Command: []string{"/bin/sh", "-c", `cat >"$0/question"; exit 1`, folder},
			Daemon: starts})
		require.Equal(t, starts, p.(provisioners.DaemonStarter).StartsDaemons())
		spec := testSpec()
		spec.Daemon = provisioners.Daemon{URL: "https://forewarm.example", Token: "secret"}
		_, err := p.Create(t.Context(), "token", spec)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
		question, err := os.ReadFile(filepath.Join(folder, "question"))
		require.NoError(t, err)
		require.Equal(t, starts, strings.Contains(string(question),
			`"daemon":{"url":"https://forewarm.example","join_token":"secret"}`), string(question))
	}
}

func TestCommandsOfTheirOwn(t *testing.T) {
	t.Parallel()
	echo := func(text string) []string { return []string{"/bin/sh", "-c", `echo "$0"`, text} }
	p := openScripts(t, exec.Config{Commands: exec.Commands{
		Create: echo(`{"error":{"kind":"quota","scope":"gpus"}}`), Get: echo(`{"instance":` + good + `}`),
		List: echo(`{"instances":[],"complete":true}`), Delete: echo(`{}`), Renew: echo(`{}`),
		Offers: echo(`{"offers":[]}`),
	}})
	errs := callAll(t, p)
	requireKind(t, provisioners.KindQuota, errs["create"], "create")
	delete(errs, "create")
	for verb, err := range errs {
		require.NoError(t, err, verb)
	}
}

func TestConfigMistakesAreNamed(t *testing.T) {
	t.Parallel()
	_, err := exec.New(exec.Config{
		Name: "Not A Name", Command: []string{"./script"},
		Commands: exec.Commands{Get: []string{""}, Offers: []string{"x"}},
		Env:      []string{"A=B"}, Dir: "here", Timeout: -1, Timeouts: exec.Timeouts{List: -1}, Parallel: -1,
		Offers: []exec.Offer{{Type: "a", Model: "m", GPUs: 1}, {Type: "a", Model: "m", GPUs: 1}, {}, {Type: "b"}},
	}, clock.System{})
	for _, want := range []string{
		"name", "command[0]", "commands.get[0]", "env[0]", "dir", "timeout:", "timeouts.list", "parallel",
		"offers, commands.offers", "offers[1]", "offers[2]: type", "offers[3]: model",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = exec.New(exec.Config{Commands: exec.Commands{Get: []string{"x"}}}, clock.System{})
	for _, want := range []string{"commands.create", "commands.list", "commands.delete", "commands.offers"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "commands.renew")
}
