package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// fleet is a world with two warm nodes of four GPUs.
type fleet struct {
	*world
	nodes []contract.Node
}

func newFleet(t *testing.T, change ...func(*server.Config)) *fleet {
	t.Helper()
	return fleetIn(t, newWorld(t, change...))
}

// fleetIn makes the fleet of a world.
func fleetIn(t *testing.T, w *world) *fleet {
	t.Helper()
	f := &fleet{world: w}
	f.warmNodes(f.createPool(), 2)
	f.nodes = ask[contract.List[contract.Node]](f.world, "root", http.MethodGet, "/v1/nodes", "").Items
	require.Len(t, f.nodes, 2)
	return f
}

func (f *fleet) path(i int, what string) string { return "/v1/nodes/" + f.nodes[i].ID + "/" + what }

// token issues a join token for a node, and keeps it as a key.
func (f *fleet) token(i int, name string) {
	f.t.Helper()
	f.keys[name] = ask[contract.JoinToken](f.world, "root", http.MethodPost, f.path(i, "join-token"), "{}").Token
}

// join has a daemon of a boot join, and keeps its key.
func (f *fleet) join(i int, boot, name string) {
	f.t.Helper()
	f.token(i, "token of "+name)
	f.keys[name] = ask[contract.NodeJoined](f.world, "token of "+name, http.MethodPost, f.path(i, "join"),
		`{"boot_id":"`+boot+`"}`).Key
}

// beat is a heartbeat of a node's GPUs, of which the first has a health.
func (f *fleet) beat(i int, epoch, seq int64, health string, change ...func(*contract.Heartbeat)) string {
	b := contract.Heartbeat{Version: "1.0", BootID: "boot", Epoch: epoch, Seq: seq,
		Look: contract.NodeLook{Source: "nvml", Driver: "570.86", GPUs: []contract.LookGPU{}}}
	for g := range 4 {
		busy := 10*g + int(seq)
		b.Look.GPUs = append(b.Look.GPUs, contract.LookGPU{UUID: fmt.Sprintf("%s-gpu%d", f.nodes[i].ID, g), Index: g,
			Model: "a100", Health: "healthy", GPUTelemetry: contract.GPUTelemetry{Utilization: &busy}})
	}
	if b.Look.GPUs[0].Health = health; health != "healthy" {
		b.Look.GPUs[0].Evidence = []contract.HealthEvidence{{Rule: "xid_79", Detail: "XID 79: it fell off the bus",
			Since: begin}}
	}
	for _, c := range change {
		c(&b)
	}
	text, err := json.Marshal(b)
	require.NoError(f.t, err)
	return string(text)
}

func (f *fleet) sendBeat(key string, i int, body string) contract.HeartbeatAnswer {
	f.t.Helper()
	return ask[contract.HeartbeatAnswer](f.world, key, http.MethodPut, f.path(i, "heartbeat"), body)
}

func (f *fleet) node(i int) contract.Node {
	f.t.Helper()
	return ask[contract.Node](f.world, "root", http.MethodGet, "/v1/nodes/"+f.nodes[i].ID, "")
}

func (f *fleet) gpu(i, g int) contract.GPU {
	f.t.Helper()
	return ask[contract.GPU](f.world, "root", http.MethodGet, fmt.Sprintf("/v1/gpus/%s-gpu%d", f.nodes[i].ID, g), "")
}

// events are those of a kind about a node.
func (f *fleet) events(i int, kind string) []contract.Event {
	f.t.Helper()
	return slices.DeleteFunc(ask[contract.EventList](f.world, "root", http.MethodGet, "/v1/events?subject="+f.nodes[i].ID,
		"").Items, func(e contract.Event) bool { return e.Type != kind })
}

// end removes a node as a worker does whose provider says that it is gone.
func (f *fleet) end(i int) {
	f.t.Helper()
	ctx := f.t.Context()
	_, err := f.ledger.DrainNode(ctx, ledger.SystemActor("test"), f.nodes[i].ID, "")
	require.NoError(f.t, err)
	for range 100 {
		f.clock.Advance(time.Minute)
		due, err := f.ledger.Dispatch(ctx, 100, time.Second)
		require.NoError(f.t, err)
		for _, task := range due {
			claimed, err := f.ledger.ClaimTask(ctx, task.ID, task.Attempt, time.Minute)
			require.NoError(f.t, err)
			if task.Kind != ledger.TaskDeleteNode {
				f.runTask(claimed)
				continue
			}
			require.NoError(f.t, f.ledger.ReportAbsent(ctx, ledger.Guard{TaskID: task.ID, Fence: claimed.Fence}, task.Subject,
				time.Time{}))
		}
		if f.node(i).State == "gone" {
			return
		}
	}
}

func TestADaemonJoinsAndReports(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	require.Equal(t, "none", f.node(0).Daemon.State, "it never called home")
	require.Nil(t, f.gpu(0, 1).Seen)
	f.join(0, "boot", "daemon")
	require.Equal(t, int64(10), f.sendBeat("daemon", 0, f.beat(0, 100, 1, "healthy")).HeartbeatSeconds)
	require.Equal(t, contract.NodeDaemon{State: "online", SeenAt: f.clock.Now().UTC(), Version: "1.0", Source: "nvml"},
		*f.node(0).Daemon)
	seen := f.gpu(0, 1)
	require.Equal(t, 11, *seen.Seen.Utilization)
	require.Nil(t, seen.Seen.Temperature, "what was not read is not told")
	require.False(t, seen.Seen.Simulated)
	require.Equal(t, "healthy", seen.Health)
	require.Equal(t, "none", f.node(1).Daemon.State, "the other node goes on without")

	f.clock.Advance(10 * time.Second)
	f.sendBeat("daemon", 0, f.beat(0, 100, 3, "degraded"))
	f.sendBeat("daemon", 0, f.beat(0, 100, 2, "healthy")) // it was overtaken
	require.Equal(t, "degraded", f.gpu(0, 0).Health)
	require.Equal(t, "xid_79", f.gpu(0, 0).Seen.Evidence[0].Rule)
	require.Len(t, ask[contract.GPUList](f.world, "root", http.MethodGet, "/v1/gpus?health=degraded", "").Items, 1)
	require.Equal(t, "ready", f.node(0).State)

	f.clock.Advance(91 * time.Second)
	require.Equal(t, "silent", f.node(0).Daemon.State)
	require.Equal(t, "unknown", f.gpu(0, 0).Health)
	require.Equal(t, 3, *f.gpu(0, 0).Seen.Utilization, "what it said last, with its time")
}

// Another server reads what a daemon told this one, and after its start nobody is silent.
func TestEveryServerKnowsTheDaemons(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.sendBeat("daemon", 0, f.beat(0, 100, 1, "healthy"))
	f.clock.Advance(10 * time.Minute)
	var err error
	cfg := server.Config{Ledger: f.ledger, Clock: f.clock, Limits: unlimited, Peppers: []keys.Pepper{f.minter.Pepper}}
	f.server, err = server.New(cfg)
	require.NoError(t, err)
	f.handler = f.server
	require.Equal(t, "online", f.node(0).Daemon.State, "nobody has listened long enough to tell")
	require.Equal(t, 11, *f.gpu(0, 1).Seen.Utilization)
	f.clock.Advance(2 * time.Minute)
	require.Equal(t, "silent", f.node(0).Daemon.State)
	f.sendBeat("daemon", 0, f.beat(0, 100, 9, "healthy"))
	require.Equal(t, "online", f.node(0).Daemon.State)
}

// A server that is started anew calls nobody online who was silent while another listened.
func TestASilentDaemonStaysSilentForANewServer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.join(1, "boot", "other")
	f.sendBeat("daemon", 0, f.beat(0, 100, 1, "healthy"))
	f.clock.Advance(10 * time.Minute)
	f.sendBeat("other", 1, f.beat(1, 100, 1, "healthy"))
	f.clock.Advance(10 * time.Second)
	var err error
	f.server, err = server.New(server.Config{Ledger: f.ledger, Clock: f.clock, Limits: unlimited,
		Peppers: []keys.Pepper{f.minter.Pepper}})
	require.NoError(t, err)
	f.handler = f.server
	require.Equal(t, "silent", f.node(0).Daemon.State)
	require.Equal(t, "online", f.node(1).Daemon.State)
}

func TestAJoinTokenWorksOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	p := f.refuse("token of daemon", http.MethodPost, f.path(0, "join"), `{"boot_id":"other"}`)
	require.Equal(t, contract.CodeDaemonRefused, p.Code)
	require.Contains(t, p.Detail, "was used before")
	require.Contains(t, p.Fixes[0].Command, "forewarm nodes join "+f.nodes[0].ID)
	told := f.events(0, "node.daemon_refused")
	require.Len(t, told, 1)
	require.Equal(t, ledger.RefusedTokenUsed, told[0].Reason)
	f.refuse("token of daemon", http.MethodPost, f.path(0, "join"), `{"boot_id":"other"}`)
	require.Len(t, f.events(0, "node.daemon_refused"), 1, "it is told once a minute")
	f.sendBeat("daemon", 0, f.beat(0, 1, 1, "healthy"))
}

// The answer that brings a daemon its key may be lost. Until it has used the key, it may join
// again, in the same boot of its machine; what nobody got is then worth nothing.
func TestTheAnswerToAJoinMayBeLost(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "lost")
	again := func(key, boot string) *httptest.ResponseRecorder {
		r := f.send("token of lost", http.MethodPost, f.path(0, "join"), fmt.Sprintf(`{"boot_id":%q}`, boot))
		var got contract.NodeJoined
		require.NoError(t, json.Unmarshal(r.Body.Bytes(), &got))
		f.keys[key] = got.Key
		return r
	}
	require.Equal(t, http.StatusConflict, again("stolen", "another machine's").Code)
	f.clock.Advance(time.Second)
	require.Equal(t, http.StatusOK, again("daemon", "boot").Code)
	require.Len(t, f.events(0, "node.joined"), 2)
	require.Equal(t, http.StatusUnauthorized,
		f.send("lost", http.MethodPut, f.path(0, "heartbeat"), f.beat(0, 100, 1, "healthy")).Code)
	f.sendBeat("daemon", 0, f.beat(0, 100, 1, "healthy"))
	require.Equal(t, http.StatusConflict, again("late", "boot").Code, "it has used its key")

	f.join(1, "boot", "lost")
	f.clock.Advance(15 * time.Minute)
	require.Contains(t, f.refuse("token of lost", http.MethodPost, f.path(1, "join"), `{"boot_id":"boot"}`).Detail,
		"has expired")
}

func TestAJoinTokenExpires(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.token(0, "late")
	f.clock.Advance(15 * time.Minute)
	p := f.refuse("late", http.MethodPost, f.path(0, "join"), `{"boot_id":"boot"}`)
	require.Contains(t, p.Detail, "has expired")
	require.Equal(t, ledger.RefusedTokenExpired, f.events(0, "node.daemon_refused")[0].Reason)
	p = f.refuse("root", http.MethodPost, f.path(0, "join-token"), `{"expires_in_seconds":901}`)
	require.Equal(t, contract.CodeValidationFailed, p.Code)
	f.token(0, "first")
	f.token(0, "second")
	require.Equal(t, 401, f.send("first", http.MethodPost, f.path(0, "join"), `{"boot_id":"boot"}`).Code,
		"a newer token voids it")
}

// Two daemons with one identity: on one machine the later one is believed; one on another
// machine is not, whatever its clock says.
func TestTwoDaemonsWithOneIdentity(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.sendBeat("daemon", 0, f.beat(0, 100, 7, "healthy"))
	f.sendBeat("daemon", 0, f.beat(0, 200, 1, "healthy", func(b *contract.Heartbeat) {
		b.SentAt = begin.AddDate(-1, 0, 0) // its clock is wrong
	}))
	p := f.refuse("daemon", http.MethodPut, f.path(0, "heartbeat"), f.beat(0, 100, 8, "healthy"))
	require.Equal(t, contract.CodeDaemonRefused, p.Code)
	require.Contains(t, p.Detail, "began later")
	require.Equal(t, contract.ErrorSuperseded, p.Errors[0].Code)
	f.clock.Advance(2 * time.Minute)
	clone := f.beat(0, 300, 1, "healthy", func(b *contract.Heartbeat) { b.BootID = "another machine's" })
	require.Contains(t, f.refuse("daemon", http.MethodPut, f.path(0, "heartbeat"), clone).Detail, "has booted")
	require.Contains(t, f.refuse("daemon", http.MethodPost, f.path(0, "renew"), `{"boot_id":"another"}`).Detail,
		"has booted")
	told := f.events(0, "node.daemon_refused")
	require.Len(t, told, 2)
	require.Equal(t, []string{ledger.RefusedSuperseded, ledger.RefusedOtherBoot}, []string{told[0].Reason, told[1].Reason})
	f.sendBeat("daemon", 0, f.beat(0, 200, 2, "healthy"))
	f.join(0, "another machine's", "anew")
	f.sendBeat("anew", 0, f.beat(0, 5, 1, "healthy", func(b *contract.Heartbeat) { b.BootID = "another machine's" }))
	require.Equal(t, 401, f.send("daemon", http.MethodPut, f.path(0, "heartbeat"), f.beat(0, 200, 3, "healthy")).Code)
}

func TestNodeKeysAreRenewedAndExpire(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "first")
	renewed := ask[contract.NodeJoined](f.world, "first", http.MethodPost, f.path(0, "renew"), `{"boot_id":"boot"}`)
	require.Equal(t, int64(86_400), renewed.ExpiresInSeconds)
	f.keys["second"] = renewed.Key
	f.sendBeat("first", 0, f.beat(0, 1, 1, "healthy"))
	f.sendBeat("second", 0, f.beat(0, 1, 2, "healthy"))
	// The answer to a renewal was lost: the old key renews again.
	f.keys["third"] = ask[contract.NodeJoined](f.world, "first", http.MethodPost, f.path(0, "renew"),
		`{"boot_id":"boot"}`).Key
	f.clock.Advance(ledger.OldKeyLife)
	require.Equal(t, 401, f.send("first", http.MethodPut, f.path(0, "heartbeat"), f.beat(0, 1, 3, "healthy")).Code)
	f.sendBeat("third", 0, f.beat(0, 1, 4, "healthy"))
	f.clock.Advance(ledger.NodeKeyLife)
	require.Equal(t, 401, f.send("third", http.MethodPut, f.path(0, "heartbeat"), f.beat(0, 1, 5, "healthy")).Code)
	require.Equal(t, 401, f.send("third", http.MethodPost, f.path(0, "renew"), `{"boot_id":"boot"}`).Code)
}

// A node's key may do nothing but report for its own node, and a token nothing but join.
func TestWhatNodeKeysMayDo(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.token(0, "token")
	f.createKey("viewer", "viewer")
	f.createAgentKey("agent")
	may := map[string][]string{"daemon": {"POST /v1/nodes/:id/renew", "PUT /v1/nodes/:id/heartbeat",
		"PUT /v1/nodes/:id/jobs/:job/output", "POST /forewarm.v1.NodeService/:procedure"},
		"token": {"POST /v1/nodes/:id/join"}}
	for route, policy := range f.server.Policies() {
		if policy.Public {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		own := strings.NewReplacer(":id", f.nodes[0].ID, ":uuid", "GPU-1", ":procedure", "Attach", ":job", "job_1").
			Replace(path)
		for key, routes := range may {
			if !slices.Contains(routes, route) {
				require.Equal(t, contract.CodePermissionDenied, f.refuse(key, method, own, "").Code, "%s with %s", route, key)
			}
		}
		if policy.Node || policy.Join {
			for _, key := range []string{"root", "viewer", "agent"} {
				require.Equal(t, contract.CodePermissionDenied, f.refuse(key, method, own, "").Code, "%s with %s", route, key)
			}
			if !strings.Contains(path, ":id") {
				continue // whose node it is about, the key says
			}
			other := strings.Replace(path, ":id", f.nodes[1].ID, 1)
			for key := range may {
				require.Equal(t, contract.CodePermissionDenied, f.refuse(key, method, other, "").Code, "%s with %s", route, key)
			}
		}
	}
	form := "key=" + f.keys["daemon"]
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	out := httptest.NewRecorder()
	f.server.ServeHTTP(out, r)
	require.Equal(t, http.StatusForbidden, out.Code, "nor open the page")
}

func TestTheDaemonOfANodeThatIsOverIsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.token(0, "token")
	f.end(0)
	require.Equal(t, "gone", f.node(0).State)
	require.Equal(t, 401, f.send("daemon", http.MethodPut, f.path(0, "heartbeat"), f.beat(0, 1, 1, "healthy")).Code)
	require.Contains(t, f.refuse("token", http.MethodPost, f.path(0, "join"), `{"boot_id":"boot"}`).Detail, "is over")
	require.Equal(t, contract.CodeStateConflict, f.refuse("root", http.MethodPost, f.path(0, "join-token"), "{}").Code)
}

func TestHeartbeatsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	for name, change := range map[string]func(*contract.Heartbeat){
		"too many GPUs": func(b *contract.Heartbeat) { b.Look.GPUs = slices.Repeat(b.Look.GPUs[:1], 65) },
		"no health":     func(b *contract.Heartbeat) { b.Look.GPUs[0].Health = "" },
		"more than all": func(b *contract.Heartbeat) { n := 101; b.Look.GPUs[0].Utilization = &n },
		"no boot":       func(b *contract.Heartbeat) { b.BootID = "" },
		"another source": func(b *contract.Heartbeat) {
			b.Look.Source = "hearsay"
		},
	} {
		body := f.beat(0, 1, 1, "healthy", change)
		require.Equal(t, contract.CodeValidationFailed, f.refuse("daemon", http.MethodPut, f.path(0, "heartbeat"), body).Code,
			name)
	}
	f = newFleet(t, func(c *server.Config) { c.Limits.Nodes = auth.Rate{PerSecond: 1, Burst: 2} })
	f.token(0, "token")
	for range 2 {
		f.send("token", http.MethodPost, f.path(0, "join"), `{"boot_id":"boot"}`)
	}
	slow := f.send("token", http.MethodPost, f.path(0, "join"), `{"boot_id":"boot"}`)
	require.Equal(t, 429, slow.Code)
	require.Equal(t, "1", slow.Header().Get("Retry-After"))
}
