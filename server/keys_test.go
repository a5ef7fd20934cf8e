package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server"
)

// What the trial did: an admin ends the operator, or the operator ends itself.
func TestTheWayBackInIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := ask[contract.Whoami](w, "root", http.MethodGet, "/v1/whoami", "").KeyID
	w.createKey("admin", "admin")
	p := w.refuse("admin", http.MethodDelete, "/v1/keys/"+root, "")
	require.Equal(t, contract.CodePermissionDenied, p.Code)
	p = w.refuse("root", http.MethodDelete, "/v1/keys/"+root, "")
	require.Equal(t, contract.CodeStateConflict, p.Code)
	require.Contains(t, p.Fixes[0].Label, "never expires")

	heir := w.keepKey("heir", `{"name":"heir","kind":"person","role":"operator","never_expires":true}`)
	require.Equal(t, root, heir.ParentID)
	require.Equal(t, 403, w.send("admin", http.MethodPost, "/v1/keys/"+heir.ID+"/adopt", "").Code)
	require.Empty(t, ask[contract.Key](w, "root", http.MethodPost, "/v1/keys/"+heir.ID+"/adopt", "").ParentID)
	ask[contract.Key](w, "heir", http.MethodDelete, "/v1/keys/"+root, "")
	require.Equal(t, "operator", ask[contract.Whoami](w, "heir", http.MethodGet, "/v1/whoami", "").Role)
	require.Equal(t, 401, w.send("admin", http.MethodGet, "/v1/whoami", "").Code,
		"what root made ended with it, at once")
}

func TestKeysDoNotLastForEverUnsaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	caps := `"caps":{"max_gpus":1,"max_per_day":{"amount":"1","currency":"USD"},` +
		`"max_lead_seconds":60,"max_window_seconds":60}`
	require.Equal(t, begin.Add(server.DefaultKeyLife), w.createKey("usual", "admin").ExpiresAt)
	require.Zero(t, w.keepKey("for ever", `{"name":"x","kind":"person","role":"admin","never_expires":true}`).ExpiresAt)
	require.Zero(t, w.keepKey("agent", `{"name":"x","kind":"agent","role":"member",`+caps+`}`).ExpiresAt)
	both := w.refuse("root", http.MethodPost, "/v1/keys",
		`{"name":"x","kind":"person","role":"admin","never_expires":true,"expires_in_seconds":60}`)
	require.Equal(t, contract.CodeValidationFailed, both.Code)

	w.keepKey("minute", `{"name":"x","kind":"person","role":"admin","expires_in_seconds":60}`)
	for _, body := range []string{`"kind":"person"`, `"kind":"agent",` + caps} {
		made := ask[contract.KeyCreated](w, "minute", http.MethodPost, "/v1/keys",
			`{"name":"x","role":"member",`+body+`}`)
		require.Equal(t, begin.Add(time.Minute), made.Key.ExpiresAt, "no longer than its maker")
	}
	for _, life := range []string{`"never_expires":true`, `"expires_in_seconds":61`} {
		p := w.refuse("minute", http.MethodPost, "/v1/keys", `{"name":"x","kind":"person","role":"member",`+life+`}`)
		require.Equal(t, contract.CodeValidationFailed, p.Code)
		require.Contains(t, p.Detail, "must not outlive")
	}
	set := newWorld(t, func(c *server.Config) { c.KeyLife = time.Hour })
	require.Equal(t, begin.Add(time.Hour), set.createKey("brief", "viewer").ExpiresAt)
}

// A list of keys is of those that work, as every list is of what is live.
func TestKeysThatEndedAreListedWhenAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := w.createKey("gone", "viewer")
	w.keepKey("brief", `{"name":"brief","kind":"person","role":"viewer","expires_in_seconds":60}`)
	ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+gone.ID, "")
	list := func(query string) (names []string) {
		for _, k := range ask[contract.List[contract.Key]](w, "root", http.MethodGet, "/v1/keys"+query, "").Items {
			names = append(names, k.Name)
		}
		return names
	}
	require.ElementsMatch(t, []string{"root", "brief"}, list(""))
	w.clock.Advance(time.Minute)
	require.ElementsMatch(t, []string{"root"}, list(""))
	require.ElementsMatch(t, []string{"root", "brief", "gone"}, list("?all=true"))
}

// A key that ended with another one is in no list of those that work, and says with which.
func TestKeysThatEndedWithAnotherOneSaySo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maker := w.createKey("maker", "admin")
	made := ask[contract.KeyCreated](w, "maker", http.MethodPost, "/v1/keys",
		`{"name":"made","kind":"person","role":"viewer"}`).Key
	require.True(t, made.Works)
	require.False(t, ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+maker.ID, "").Works)
	for _, k := range ask[contract.List[contract.Key]](w, "root", http.MethodGet, "/v1/keys", "").Items {
		require.NotContains(t, []string{"maker", "made"}, k.Name)
		require.True(t, k.Works)
	}
	for _, k := range ask[contract.List[contract.Key]](w, "root", http.MethodGet, "/v1/keys?all=true", "").Items {
		require.Equal(t, k.Name == "root", k.Works, k.Name)
		if k.Name == "made" {
			require.Equal(t, maker.ID, k.EndedWith)
			require.Zero(t, k.RevokedAt)
		} else {
			require.Empty(t, k.EndedWith)
		}
	}
}

// Ten keys of a key that may hold one GPU hold one together.
func TestCapsAreSharedByWhatAKeyMakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.keepKey("one", `{"name":"one","kind":"person","role":"admin",
		"caps":{"max_gpus":1,"max_per_day":{"amount":"100","currency":"USD"},`+
		`"max_lead_seconds":86400,"max_window_seconds":86400}}`)
	refused := 0
	for range 10 {
		made := ask[contract.KeyCreated](w, "one", http.MethodPost, "/v1/keys",
			`{"name":"child","kind":"person","role":"member"}`)
		require.Equal(t, 1, made.Key.Caps.MaxGPUs)
		w.keys["child"] = made.Secret
		out := w.send("child", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1,"lease_seconds":3600}`,
			contract.HeaderIdempotencyKey, made.Key.ID)
		if out.Code == 403 {
			require.Contains(t, out.Body.String(), contract.CodeKeyCapExceeded)
			refused++
		}
	}
	require.Equal(t, 9, refused)
}

// Schedules are the organization's: they go on without the key that made them,
// and its revocation names them, also those of keys that end with it.
func TestARevocationNamesTheSchedulesThatGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	maker := w.createKey("maker", "admin")
	made := ask[contract.KeyCreated](w, "maker", http.MethodPost, "/v1/keys",
		`{"name":"child","kind":"person","role":"member"}`)
	w.keys["child"] = made.Secret
	schedule := func(key, name string) contract.Schedule {
		return ask[contract.Schedule](w, key, http.MethodPost, "/v1/schedules",
			strings.Replace(standup, "standup", name, 1), "Idempotency-Key", name)
	}
	goes, child := schedule("maker", "goes-on"), schedule("child", "childs")
	paused, deleted := schedule("maker", "paused"), schedule("maker", "deleted")
	schedule("root", "anothers")
	ask[contract.Schedule](w, "maker", http.MethodPost, "/v1/schedules/"+paused.ID+"/pause", "", "Idempotency-Key", "p")
	require.Equal(t, 200, w.send("maker", http.MethodDelete, "/v1/schedules/"+deleted.ID, "").Code)
	got := ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+maker.ID, "")
	require.Equal(t, []contract.KeyEnded{{ID: made.Key.ID, Name: "child"}}, got.Ended)
	require.ElementsMatch(t,
		[]contract.KeySchedule{{ID: goes.ID, Name: "goes-on", MadeBy: goes.MadeBy, MadeByName: goes.MadeByName},
			{ID: child.ID, Name: "childs", MadeBy: child.MadeBy, MadeByName: child.MadeByName}}, got.Schedules)
	require.False(t, ask[contract.Schedule](w, "root", http.MethodGet, "/v1/schedules/"+goes.ID, "").Paused)
}

// Whoever repeats a request for a key because its answer was lost gets no second one that works, and hears of the
// first.
func TestAKeyIsMadeOnceForAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body = `{"name":"ci","kind":"person","role":"member"}`
	first := ask[contract.KeyCreated](w, "root", http.MethodPost, "/v1/keys", body, "Idempotency-Key", "once")
	p := w.refuse("root", http.MethodPost, "/v1/keys", body, "Idempotency-Key", "once")
	require.Equal(t, contract.CodeStateConflict, p.Code)
	require.Equal(t, contract.HeaderIdempotencyKey, p.Errors[0].Pointer)
	require.Contains(t, p.Detail, first.Key.ID)
	require.Contains(t, p.Fixes[0].Command, "forewarm key revoke "+first.Key.ID)
	require.Len(t, ask[contract.List[contract.Key]](w, "root", http.MethodGet, "/v1/keys", "").Items, 2)
	p = w.refuse("root", http.MethodPost, "/v1/keys", `{"name":"cd","kind":"person","role":"member"}`,
		"Idempotency-Key", "once")
	require.Equal(t, contract.CodeIdempotencyKeyReused, p.Code)
	ask[contract.KeyCreated](w, "root", http.MethodPost, "/v1/keys", `{"name":"cd","kind":"person","role":"member"}`,
		"Idempotency-Key", "another")
}

// What shows a secret and makes another one each time does not pretend that it can be repeated.
func TestTokensRefuseAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"join-token", "join", "renew"} {
		p := w.refuse("root", http.MethodPost, "/v1/nodes/nod_1/"+path, "{}", "Idempotency-Key", "once")
		require.Equal(t, contract.CodeInvalidParameter, p.Code)
		require.Equal(t, contract.HeaderIdempotencyKey, p.Errors[0].Pointer)
		require.Contains(t, p.Errors[0].Message, "must not be given")
	}
}
