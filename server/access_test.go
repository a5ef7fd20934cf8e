package server_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// newPlacedWorld is a world whose machines come up at an address.
func newPlacedWorld(t *testing.T, simulated bool, at func(nodeID string) string) *world {
	t.Helper()
	w := newWorld(t)
	w.place = func(nodeID string, m *ledger.Instance) { m.Address, m.Simulated = at(nodeID), simulated }
	return w
}

func at(address string) func(string) string { return func(string) string { return address } }

func (w *world) accessOf(key, id string) *contract.Access {
	w.t.Helper()
	return ask[contract.Allocation](w, key, http.MethodGet, "/v1/allocations/"+id, "").Access
}

// The holder of GPUs learns how to get to them, and so does an operator. Nobody else
// does: no other tenant, no viewer of its own organization; and not before the GPUs are
// its, nor after.
func TestAccessIsItsHoldersAlone(t *testing.T) {
	t.Parallel()
	w := newPlacedWorld(t, false, at("ssh://ubuntu@10.9.8.7:2222"))
	ours, theirs := w.shareNode()
	w.createKey("viewer", "viewer")
	w.createKey("admin", "admin")

	for _, key := range []string{"member", "admin", "root"} {
		got := w.accessOf(key, ours.ID)
		require.NotNil(t, got, key)
		require.Equal(t, contract.AccessShell, got.Policy)
		require.Len(t, got.Nodes, 1)
		n := got.Nodes[0]
		require.Equal(t, "ssh -p 2222 ubuntu@10.9.8.7", n.Shell, key)
		require.Equal(t, []string{"ssh", "-p", "2222", "ubuntu@10.9.8.7"}, n.Command)
		require.Equal(t, []string{ours.Devices[0].UUID}, n.GPUUUIDs, "its own devices of the node alone")
		require.Equal(t, []int{2}, n.GPUIndices)
		require.Equal(t, "10.9.8.7 ubuntu ssh ssh://ubuntu@10.9.8.7:2222",
			strings.Join([]string{n.Address, n.User, n.Kind, n.Way}, " "))
		require.Equal(t, 2222, n.Port)
		require.Equal(t, "1", n.Environment["WORLD_SIZE"])
		require.Equal(t, ours.ID, n.Environment["FOREWARM_ALLOCATION"])
	}
	require.Nil(t, w.accessOf("viewer", ours.ID), "a viewer only looks")
	require.NotNil(t, w.accessOf("theirs", theirs.ID), "they have theirs")
	require.Equal(t, contract.CodeNotFound, w.refuse("theirs", http.MethodGet, "/v1/allocations/"+ours.ID, "").Code)

	ask[contract.Allocation](w, "member", http.MethodPost, "/v1/allocations/"+ours.ID+"/release", "",
		"Idempotency-Key", "gone")
	require.Nil(t, w.accessOf("member", ours.ID))
	require.Nil(t, w.accessOf("root", ours.ID))
}

// A lease that is over gives no access, though nobody has swept it up yet.
func TestAccessEndsWithTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours, _ := w.shareNode()
	got := ask[contract.Allocation](w, "member", http.MethodGet, "/v1/allocations/"+ours.ID, "")
	require.NotNil(t, got.Access)
	w.clock.Advance(got.LeaseUntil.Sub(w.clock.Now()))
	got = ask[contract.Allocation](w, "member", http.MethodGet, "/v1/allocations/"+ours.ID, "")
	require.Equal(t, "active", got.State)
	require.Nil(t, got.Access)
}

// Nothing that is kept, listed or sent on contains a way in, whoever reads it.
func TestAccessStaysWhereItIsAsked(t *testing.T) {
	t.Parallel()
	const secret = "10.9.8.7"
	w := newPlacedWorld(t, false, at(secret))
	w.warmNodes(w.createPool(), 1)
	w.createKey("member", "member")
	made := w.send("member", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1,"name":"x"}`,
		"Idempotency-Key", "one", "Prefer", "wait=5")
	require.Equal(t, http.StatusCreated, made.Code)
	require.Contains(t, made.Body.String(), `"shell":"ssh `+secret+`"`, "who waits gets it at once")
	w.createKey("viewer", "viewer")

	for _, key := range []string{"member", "viewer", "root"} {
		for _, path := range []string{"/v1/allocations", "/v1/allocations?all=true", "/v1/events", "/v1/decisions",
			"/v1/gpus", "/v1/pools"} {
			got := w.send(key, http.MethodGet, path, "")
			require.Equal(t, http.StatusOK, got.Code, path)
			require.NotContains(t, got.Body.String(), secret, key+" "+path)
			require.NotContains(t, got.Body.String(), `"environment":{`, key+" "+path)
		}
	}
	for _, text := range []string{w.pageOf("viewer"),
		w.send("member", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1,"name":"x"}`,
			"Idempotency-Key", "one").Body.String(),
		w.send("member", http.MethodPost, "/v1/plans", `{"kind":"allocate","request":{"pool":"lab","gpus":1}}`).Body.String(),
		w.send("member", http.MethodPost, "/v1/allocations?dry_run=true", `{"pool":"lab","gpus":1}`,
			"Idempotency-Key", "two", "Prefer", "wait=5").Body.String()} {
		require.NotContains(t, text, secret)
	}
}

// Two nodes know each other's rank, and where the first one is.
func TestAccessOfAGang(t *testing.T) {
	t.Parallel()
	job := map[string]int{}
	w := newPlacedWorld(t, false, func(nodeID string) string {
		if job[nodeID] == 0 {
			job[nodeID] = 41 + len(job)
		}
		return fmt.Sprintf("slurm://c%d?job=%d", job[nodeID], job[nodeID])
	})
	w.warmNodes(w.createPool(), 2)
	held := ask[contract.Allocation](w, "root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":5}`,
		"Idempotency-Key", "gang")
	got := w.accessOf("root", held.ID)
	require.Len(t, got.Nodes, 2)
	for rank, n := range got.Nodes {
		require.Equal(t, rank, n.Rank)
		require.Equal(t, fmt.Sprintf("c%d", job[n.NodeID]), n.Address)
		require.Equal(t, []string{"4", "1"}[rank], n.Environment["NPROC_PER_NODE"], "the last has the rest")
		require.Equal(t, []string{"0", "1"}[rank], n.Environment["NODE_RANK"])
		require.Equal(t, "2 5 "+got.Nodes[0].Address, n.Environment["NNODES"]+" "+n.Environment["WORLD_SIZE"]+" "+
			n.Environment["MASTER_ADDR"])
		require.Len(t, n.GPUUUIDs, []int{4, 1}[rank])
	}
	last := job[got.Nodes[1].NodeID]
	require.Equal(t, fmt.Sprintf("srun --jobid=%d --overlap --nodelist=c%d --pty bash -l", last, last),
		got.Nodes[1].Shell)
	require.Equal(t, got.Nodes[0].Environment["MASTER_PORT"], got.Nodes[1].Environment["MASTER_PORT"])
}

// What cannot be entered has no command: nodes that are simulated, whatever their
// address says, and those with an address that is none.
func TestAccessWithoutAWayIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address   string
		simulated bool
		kind      string
		enterable bool
	}{
		{"ssh://host", true, contract.WaySimulated, false},
		{"sim://m-1", true, contract.WaySimulated, false},
		{"local:///", true, contract.WayLocal, true}, // its devices are simulated, the machine is there
		{"ssh://-oProxyCommand=id", false, "", false},
		{"host name; id", false, "", false},
		{"", false, "", false},
	} {
		w := newPlacedWorld(t, c.simulated, at(c.address))
		w.warmNodes(w.createPool(), 1)
		held := ask[contract.Allocation](w, "root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
			"Idempotency-Key", "a")
		n := w.accessOf("root", held.ID).Nodes[0]
		require.Equal(t, c.kind, n.Kind, c.address)
		require.Equal(t, c.simulated, n.Simulated, c.address)
		require.Equal(t, c.enterable, n.Shell != "" && len(n.Command) > 0, c.address)
		require.NotEmpty(t, n.Environment["CUDA_VISIBLE_DEVICES"], c.address)
	}
}

// A pool may name its devices only.
func TestAccessPolicy(t *testing.T) {
	t.Parallel()
	w := newPlacedWorld(t, false, at("ssh://ubuntu@10.9.8.7"))
	w.warmNodes(w.createPool(), 1)
	w.createKey("member", "member")
	held := ask[contract.Allocation](w, "member", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
		"Idempotency-Key", "a")
	pool := ask[contract.Pool](w, "root", http.MethodGet, "/v1/pools/lab", "")
	require.Equal(t, contract.AccessShell, pool.Access)
	patch := func(policy string) {
		pool = ask[contract.Pool](w, "root", http.MethodPatch, "/v1/pools/lab", `{"access":"`+policy+`"}`, "If-Match",
			`"`+strconv.Itoa(pool.Version)+`"`)
		require.Equal(t, policy, pool.Access)
	}
	patch(contract.AccessDevices)
	for _, key := range []string{"member", "root"} {
		text := w.send(key, http.MethodGet, "/v1/allocations/"+held.ID, "").Body.String()
		require.NotContains(t, text, "10.9.8.7", key)
		got := w.accessOf(key, held.ID)
		require.Equal(t, contract.AccessDevices, got.Policy)
		n := got.Nodes[0]
		require.Equal(t, []string{held.Devices[0].UUID}, n.GPUUUIDs)
		require.Empty(t, n.Kind+n.Address+n.Shell+n.User+n.Way)
		require.Empty(t, n.Command)
	}
	require.Equal(t, http.StatusUnprocessableEntity, w.refuse("root", http.MethodPatch, "/v1/pools/lab",
		`{"access":"all"}`, "If-Match", `"`+strconv.Itoa(pool.Version)+`"`).Status)
	require.Equal(t, contract.CodePermissionDenied, w.refuse("member", http.MethodPatch, "/v1/pools/lab",
		`{"access":"shell"}`, "If-Match", `"`+strconv.Itoa(pool.Version)+`"`).Code)
	patch(contract.AccessShell)
	require.NotEmpty(t, w.accessOf("member", held.ID).Nodes[0].Shell)

	closed := ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools",
		strings.NewReplacer(`"lab"`, `"closed"`, `"max_nodes"`, `"access":"devices","max_nodes"`).Replace(poolBody))
	require.Equal(t, contract.AccessDevices, closed.Access)
}

// The kinds of the API are those of the addresses.
func TestKindsOfAccess(t *testing.T) {
	t.Parallel()
	require.Equal(t, []access.Kind{access.SSH, access.Slurm, access.Kubernetes, access.Local, access.Simulated},
		[]access.Kind{contract.WaySSH, contract.WaySlurm, contract.WayKubernetes, contract.WayLocal,
			contract.WaySimulated})
	require.False(t, capacity.Pool{}.DevicesOnly, "a pool without a policy lets its holders in")
}
