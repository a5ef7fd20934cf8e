package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
)

// pageOf is what a key's holder sees on the page.
func (w *world) pageOf(key string) string {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(url.Values{"key": {w.keys[key]}}.Encode()))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	signed := httptest.NewRecorder()
	w.server.ServeHTTP(signed, r)
	require.Equal(w.t, http.StatusSeeOther, signed.Code, signed.Body)
	r = httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "localhost"
	r.AddCookie(signed.Result().Cookies()[0])
	out := httptest.NewRecorder()
	w.server.ServeHTTP(out, r)
	require.Equal(w.t, http.StatusOK, out.Code)
	return out.Body.String()
}

// shareNode is a pool of two ready nodes, of one of which another tenant holds two
// GPUs and we, as a member, one.
func (w *world) shareNode() (ours, theirs contract.Allocation) {
	w.t.Helper()
	w.warmNodes(w.createPool(), 2)
	w.createTenant("theirs")
	w.createKey("member", "member")
	theirs = ask[contract.Allocation](w, "theirs", http.MethodPost, "/v1/allocations",
		`{"pool":"lab","gpus":2,"name":"secret-run"}`, "Idempotency-Key", "theirs")
	ours = ask[contract.Allocation](w, "member", http.MethodPost, "/v1/allocations",
		`{"pool":"lab","gpus":1,"name":"our-run"}`, "Idempotency-Key", "ours")
	require.Equal(w.t, theirs.Devices[0].NodeID, ours.Devices[0].NodeID, "both on one node")
	return ours, theirs
}

// A tenant sees the nodes that it holds or has booked, of them its own devices,
// and of pools how many GPUs there are; never who else is there, and where from.
func TestTenantsSeeTheirOwnNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours, theirs := w.shareNode()
	w.createTenant("nobody")
	mine := ours.Devices[0].NodeID
	all := ask[contract.List[contract.Node]](w, "root", http.MethodGet, "/v1/nodes", "").Items
	require.Len(t, all, 2)
	other := all[0].ID
	if other == mine {
		other = all[1].ID
	}

	got := ask[contract.List[contract.Node]](w, "member", http.MethodGet, "/v1/nodes", "").Items
	require.Len(t, got, 1)
	require.Equal(t, mine, got[0].ID)
	require.Equal(t, 4, got[0].GPUs, "counts are told")
	for _, n := range append(got, ask[contract.Node](w, "member", http.MethodGet, "/v1/nodes/"+mine, "")) {
		require.Nil(t, n.PricePerNodeHour)
		require.Empty(t, n.Provisioner+n.Region+n.InstanceType+n.ProviderID+n.Address)
	}
	require.NotNil(t, all[0].PricePerNodeHour)
	require.NotEmpty(t, all[0].Provisioner)
	ask[contract.Explanation](w, "member", http.MethodGet, "/v1/nodes/"+mine+"/explain", "")
	for _, path := range []string{other, other + "/explain", "m-" + mine} {
		require.Equal(t, contract.CodeNotFound, w.refuse("member", http.MethodGet, "/v1/nodes/"+path, "").Code, path)
	}
	require.Empty(t, ask[contract.List[contract.Node]](w, "nobody", http.MethodGet, "/v1/nodes?all=true", "").Items)
	require.Equal(t, contract.CodeNotFound, w.refuse("nobody", http.MethodGet, "/v1/nodes/"+mine, "").Code)

	gpus := ask[contract.GPUList](w, "member", http.MethodGet, "/v1/gpus", "")
	require.Len(t, gpus.Items, 1)
	require.Equal(t, "our-run", gpus.Items[0].AllocationName)
	require.Equal(t, contract.GPUCounts{Total: 1, Held: 1}, gpus.Totals)
	ask[contract.GPU](w, "member", http.MethodGet, "/v1/gpus/"+ours.Devices[0].UUID, "")
	require.Equal(t, contract.CodeNotFound, w.refuse("member", http.MethodGet, "/v1/gpus/"+theirs.Devices[0].UUID,
		"").Code)
	require.Empty(t, ask[contract.GPUList](w, "nobody", http.MethodGet, "/v1/gpus", "").Items)
	require.Equal(t, 400, w.refuse("member", http.MethodGet, "/v1/gpus?organization=theirs", "").Status,
		"it does not exist for them")

	pool := ask[contract.Pool](w, "member", http.MethodGet, "/v1/pools/lab", "")
	require.Equal(t, &contract.GPUCounts{Total: 8, Free: 5, Held: 3}, pool.GPUCounts)
	require.Equal(t, "8.40", pool.PricePerNodeHour.Amount, "tenants are charged by it")
	require.Empty(t, pool.Sources)
	require.Empty(t, ask[contract.List[contract.Pool]](w, "member", http.MethodGet, "/v1/pools", "").Items[0].Sources)
	require.NotEmpty(t, ask[contract.Pool](w, "root", http.MethodGet, "/v1/pools/lab", "").Sources)

	for _, text := range []string{w.pageOf("member"), w.send("member", http.MethodGet, "/v1/events", "").Body.String(),
		w.send("member", http.MethodGet, "/v1/nodes/"+mine+"/explain", "").Body.String()} {
		for _, hidden := range []string{other, "secret-run", theirs.ID, theirs.OrganizationID, "Cost so far",
			"10.0.0.1"} {
			require.NotContains(t, text, hidden)
		}
	}
	require.Contains(t, w.pageOf("member"), mine)
	require.Contains(t, w.pageOf("member"), "2 ready, 2 live")
	require.Contains(t, w.pageOf("nobody"), "You hold no node")
	require.Contains(t, w.pageOf("root"), other)
}

// A booking that has its place shows the node that it will be on, and what is
// booked elsewhere shows nothing.
func TestABookingShowsItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(w.createPool(), 2)
	w.createKey("member", "member")
	require.Empty(t, ask[contract.List[contract.Node]](w, "member", http.MethodGet, "/v1/nodes", "").Items)
	ask[contract.Reservation](w, "member", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key", "r")
	require.Len(t, ask[contract.List[contract.Node]](w, "member", http.MethodGet, "/v1/nodes", "").Items, 1)
	require.Empty(t, ask[contract.GPUList](w, "member", http.MethodGet, "/v1/gpus", "").Items, "it holds none")
}

// In an installation of one company everybody sees every node and GPU, and that
// it is held, but not by whom, from where, and for how much.
func TestTenantsMaySeeAllNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Ledger = verbs.New(c.Ledger.Store(), ids.UUID{}, ledger.Config{TenantsSeeNodes: true})
	})
	ours, theirs := w.shareNode()
	nodes := ask[contract.List[contract.Node]](w, "member", http.MethodGet, "/v1/nodes", "").Items
	require.Len(t, nodes, 2)
	require.Nil(t, nodes[0].PricePerNodeHour)
	gpus := ask[contract.GPUList](w, "member", http.MethodGet, "/v1/gpus", "")
	require.Equal(t, contract.GPUCounts{Total: 8, Free: 5, Held: 3}, gpus.Totals)
	for _, d := range gpus.Items {
		switch d.UUID {
		case ours.Devices[0].UUID:
			require.Equal(t, ours.ID, d.AllocationID)
		case theirs.Devices[0].UUID, theirs.Devices[1].UUID:
			require.Equal(t, "held", d.State, "it never looks free")
			require.Empty(t, d.AllocationID+d.AllocationName+d.OrganizationID+d.OrganizationName)
		default:
			require.Equal(t, "free", d.State)
		}
	}
	require.NotContains(t, w.pageOf("member"), "secret-run")
}

// A list of GPUs has its filters, its order and its totals, page by page.
func TestGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours, theirs := w.shareNode()
	get := func(query string) contract.GPUList {
		return ask[contract.GPUList](w, "root", http.MethodGet, "/v1/gpus"+query, "")
	}
	all := get("")
	require.Equal(t, contract.GPUCounts{Total: 8, Free: 5, Held: 3}, all.Totals)
	for i := 1; i < len(all.Items); i++ {
		x, y := all.Items[i-1], all.Items[i]
		require.True(t, x.NodeID < y.NodeID || x.NodeID == y.NodeID && x.Index < y.Index)
	}
	var paged []contract.GPU
	for cursor := ""; ; {
		page := get("?limit=3&cursor=" + cursor)
		require.Equal(t, all.Totals, page.Totals, "of the whole list")
		paged = append(paged, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	require.Equal(t, all.Items, paged)
	for query, n := range map[string]int{
		"?pool=lab": 8, "?node=" + ours.Devices[0].NodeID: 4, "?node=m-" + ours.Devices[0].NodeID: 4,
		"?organization=theirs": 2, "?organization=acme": 1,
		"?state=free": 5, "?state=held": 3, "?state=free,held": 8, "?state=coming": 0, "?health=healthy": 8,
		"?health=unhealthy": 0,
		"?model=a100-80g":   8, "?model=h100": 0, "?organization=theirs&state=free": 0,
	} {
		got := get(query)
		require.Len(t, got.Items, n, query)
		require.Equal(t, n, got.Totals.Total, query)
	}
	one := ask[contract.GPU](w, "root", http.MethodGet, "/v1/gpus/"+theirs.Devices[0].UUID, "")
	require.Equal(t, "secret-run theirs held healthy",
		strings.Join([]string{one.AllocationName, one.OrganizationName, one.State, one.Health}, " "))
	require.Equal(t, contract.CodeNotFound, w.refuse("root", http.MethodGet, "/v1/gpus/GPU-none", "").Code)
	require.Equal(t, 400, w.refuse("root", http.MethodGet, "/v1/gpus?state=busy", "").Status)
	for _, who := range []string{"root", "member"} {
		refused := w.refuse(who, http.MethodGet, "/v1/gpus?node=nod_none", "")
		require.Equal(t, contract.CodeInvalidParameter, refused.Code, who)
		require.Equal(t, "unknown", refused.Errors[0].Code, who)
	}

	ask[contract.Node](w, "root", http.MethodPost, "/v1/nodes/"+ours.Devices[0].NodeID+"/quarantine", "",
		"Idempotency-Key", "q")
	require.Equal(t, contract.GPUCounts{Total: 8, Free: 4, Held: 3, Unavailable: 1}, get("").Totals)
	require.Equal(t, contract.CodePermissionDenied,
		w.refuse("member", http.MethodPost, "/v1/nodes/"+ours.Devices[0].NodeID+"/quarantine", "", "Idempotency-Key",
			"q").Code)
}

// GPUs that a due booking keeps are booked, and those of a node on its way come.
func TestGPUsBookedAndComing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createPool()
	w.warmNodes(p, 1)
	ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":3,"start":"2026-03-02T08:00:30Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key", "r")
	w.runDueTasks(p)
	require.Equal(t, contract.GPUCounts{Total: 4, Free: 1, Booked: 3},
		ask[contract.GPUList](w, "root", http.MethodGet, "/v1/gpus", "").Totals)
	ask[contract.Allocation](w, "root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":4}`,
		"Idempotency-Key", "a")
	for range 3 { // until the node is asked for
		got, err := w.ledger.Dispatch(t.Context(), 100, 0)
		require.NoError(t, err)
		for _, task := range got {
			if task.Kind == ledger.TaskPlan {
				claimed, err := w.ledger.ClaimTask(t.Context(), task.ID, task.Attempt, 1e9)
				require.NoError(t, err)
				w.runTask(claimed)
			}
		}
	}
	list := ask[contract.GPUList](w, "root", http.MethodGet, "/v1/gpus", "")
	require.Equal(t, contract.GPUCounts{Total: 8, Free: 1, Booked: 3, Coming: 4}, list.Totals)
	require.Empty(t, list.Items[7].UUID)
	require.Equal(t, "coming a100-80g unknown", list.Items[7].State+" "+list.Items[7].Model+" "+list.Items[7].Health)
}

// An installation says that it is simulated when any of its pools is.
func TestVersionNamesSimulatedPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	version := func() contract.Build { return ask[contract.Build](w, "root", http.MethodGet, "/v1/version", "") }
	real := strings.NewReplacer(`"lab"`, `"steel"`, `"simulated":true`, `"simulated":false`).Replace(poolBody)
	ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools", real)
	require.False(t, version().Simulation)
	require.Empty(t, version().SimulatedPools)
	w.createPool()
	require.True(t, version().Simulation)
	require.Equal(t, []string{"lab"}, version().SimulatedPools)
}
