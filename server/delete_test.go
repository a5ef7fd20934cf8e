package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// What is still in use is not deleted, and the answer names all of it; what is
// not in use goes, is told of in the journal, and leaves its history.
func TestDeleting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	other := w.createTenant("other")
	w.createKey("admin", "admin")
	a := ask[contract.Allocation](w, "other", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
		"Idempotency-Key", "a")
	person := ask[contract.User](w, "other", http.MethodPost, "/v1/users",
		`{"email":"ada@example.org","role":"member"}`, "Idempotency-Key", "u")
	w.keepKey("ada", `{"name":"ada","kind":"person","role":"member","organization_id":"`+other.ID+`","user_id":"`+
		person.ID+`"}`)
	require.Equal(t, 200, w.send("ada", http.MethodGet, "/v1/whoami", "").Code)

	for _, path := range []string{"/v1/pools/lab", "/v1/organizations/" + other.ID} {
		require.Equal(t, contract.CodePermissionDenied, w.refuse("other", http.MethodDelete, path, "").Code, path)
		p := w.refuse("root", http.MethodDelete, path, "")
		require.Equal(t, contract.CodeInUse, p.Code, path)
		require.Equal(t, "live_allocations", p.Blockers[0].Code)
		require.Contains(t, p.Blockers[0].Message, a.ID)
		require.NotEmpty(t, p.Fixes)
	}
	require.Equal(t, contract.CodeNotFound, w.refuse("admin", http.MethodDelete, "/v1/users/"+person.ID, "").Code,
		"another tenant's")
	require.Equal(t, contract.CodePermissionDenied, w.refuse("ada", http.MethodDelete, "/v1/users/"+person.ID, "").Code)

	require.Equal(t, 204, w.send("other", http.MethodDelete, "/v1/users/"+person.ID, "").Code)
	require.Equal(t, 401, w.send("ada", http.MethodGet, "/v1/whoami", "").Code, "at once")
	require.Empty(t, ask[contract.List[contract.User]](w, "other", http.MethodGet, "/v1/users", "").Items)
	require.Equal(t, contract.CodeNotFound, w.refuse("other", http.MethodDelete, "/v1/users/"+person.ID, "").Code)

	ask[contract.Allocation](w, "other", http.MethodPost, "/v1/allocations/"+a.ID+"/release", "", "Idempotency-Key",
		"r")
	require.Equal(t, 204, w.send("root", http.MethodDelete, "/v1/organizations/"+other.ID, "").Code)
	require.Equal(t, 401, w.send("other", http.MethodGet, "/v1/whoami", "").Code, "its keys end with it")
	require.Equal(t, 204, w.send("root", http.MethodDelete, "/v1/pools/lab", "").Code)
	for _, path := range []string{"/v1/pools/lab", "/v1/organizations/" + other.ID,
		"/v1/organizations/" + other.ID + "/quota", "/v1/pools/lab/calendar"} {
		require.Equal(t, contract.CodeNotFound, w.refuse("root", http.MethodGet, path, "").Code, path)
	}
	require.Len(t, ask[contract.List[contract.Organization]](w, "root", http.MethodGet, "/v1/organizations", "").Items,
		1)
	require.Equal(t, "cancelled", ask[contract.Allocation](w, "root", http.MethodGet, "/v1/allocations/"+a.ID,
		"").State, "history stays")
	for _, kind := range []string{"user.deleted", "organization.deleted", "pool.deleted"} {
		require.Len(t, ask[contract.EventList](w, "root", http.MethodGet, "/v1/events?type="+kind, "").Items, 1, kind)
	}
	w.createPool() // the name is free
}
