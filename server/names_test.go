package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

const standup = `{"pool":"lab","name":"standup","gpus":1,` +
	`"start_local":"2026-06-01T09:00:00","timezone":"UTC","rrule":"FREQ=DAILY","duration_seconds":60}`

// Whatever has a name is found by it in every route, query and body that takes
// its id.
func TestNamesWhereIdsAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.createPool()
	w.warmNodes(pool, 1)
	person := ask[contract.User](w, "root", http.MethodPost, "/v1/users",
		`{"email":"ada@example.org","role":"member","organization_id":"acme"}`, "Idempotency-Key", "u")
	key := w.keepKey("laptop",
		`{"name":"laptop","kind":"person","role":"admin","organization_id":"acme","user_id":"ada@example.org"}`)
	require.Equal(t, person.ID, key.UserID)
	s := ask[contract.Schedule](w, "laptop", http.MethodPost, "/v1/schedules", standup, "Idempotency-Key", "s")
	a := ask[contract.Allocation](w, "laptop", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
		"Idempotency-Key", "a")
	r := ask[contract.Reservation](w, "laptop", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key", "r")

	for path, id := range map[string]string{
		"/v1/pools/lab": pool.ID, "/v1/organizations/acme": s.OrganizationID, "/v1/schedules/standup": s.ID,
	} {
		require.Equal(t, id, ask[contract.Pool](w, "root", http.MethodGet, path, "").ID, path)
	}
	for _, path := range []string{"/v1/organizations/acme/quota", "/v1/organizations/acme/usage"} {
		require.Equal(t, "acme", ask[contract.Quota](w, "laptop", http.MethodGet, path, "").OrganizationName, path)
	}
	node := ask[contract.List[contract.Node]](w, "root", http.MethodGet, "/v1/nodes?pool=lab", "").Items[0]
	require.Equal(t, node.ID, ask[contract.Node](w, "root", http.MethodGet, "/v1/nodes/"+node.ProviderID, "").ID)
	require.Equal(t, 404, w.send("laptop", http.MethodGet, "/v1/nodes/"+node.ProviderID, "").Code,
		"providers' ids are the operators'")
	require.NotEmpty(t, ask[contract.List[contract.Occurrence]](w, "laptop", http.MethodGet,
		"/v1/schedules/standup/occurrences", "").Items)
	require.True(t, ask[contract.Schedule](w, "laptop", http.MethodPost, "/v1/schedules/standup/pause", "",
		"Idempotency-Key", "p").Paused)
	require.Equal(t, person.ID, ask[contract.User](w, "root", http.MethodGet, "/v1/users/ada@example.org", "").ID)
	require.Equal(t, `"1"`, w.send("root", http.MethodGet, "/v1/users/"+person.ID, "").Header().Get("ETag"))
	require.False(t, ask[contract.User](w, "root", http.MethodPatch, "/v1/users/ada@example.org", `{"active":false}`,
		"If-Match", `"1"`).Active)

	for list, n := range map[string]int{"schedules": 1, "allocations": 1, "reservations": 1, "users": 1,
		"keys":      1, // that of a person who is not active does not work
		"decisions": 2, "forecasts": 0} {
		got := ask[contract.List[map[string]any]](w, "root", http.MethodGet, "/v1/"+list+"?organization=acme", "").Items
		require.Len(t, got, n, list)
		none := w.refuse("root", http.MethodGet, "/v1/"+list+"?organization=acmee", "")
		require.Equal(t, contract.CodeInvalidParameter, none.Code)
		require.Equal(t, `There is no organization "acmee". Did you mean "acme"?`, none.Detail)
	}
	for _, path := range []string{"/v1/reports/costs", "/v1/reports/summary", "/v1/reports/calibration", "/v1/events"} {
		require.Equal(t, 200, w.send("root", http.MethodGet, path+"?organization=acme", "").Code, path)
	}
	by := func(path string) int {
		return len(ask[contract.List[map[string]any]](w, "root", http.MethodGet, path, "").Items)
	}
	require.Equal(t, 1, by("/v1/allocations?held_by=laptop"))
	require.Equal(t, 1, by("/v1/allocations?held_by="+key.ID))
	require.Equal(t, 0, by("/v1/allocations?held_by=root"))
	require.Equal(t, 1, by("/v1/reservations?made_by=laptop"))
	require.Equal(t, 0, by("/v1/reservations?made_by=standup"))
	for _, list := range []string{"/v1/allocations", "/v1/reservations"} {
		require.Equal(t, 1, by(list+"?user=ada@example.org&since=2026-03-02T08:00:00Z&until=2026-03-02T12:00:00Z"),
			list)
		require.Equal(t, 1, by(list+"?user="+person.ID), list)
		require.Equal(t, 0, by(list+"?until=2026-03-01T08:00:00Z"), list)
		require.Equal(t, 0, by(list+"?name=otter"), list)
		none := w.refuse("root", http.MethodGet, list+"?user=eve@example.org", "")
		require.Equal(t, "user", none.Errors[0].Pointer)
		none = w.refuse("root", http.MethodGet, list+"?since=2026-03-02T08:00:00Z&until=2026-03-02T08:00:00Z", "")
		require.Equal(t, "until", none.Errors[0].Pointer)
	}
	ask[contract.Prewarm](w, "root", http.MethodPost, "/v1/prewarm/pause", `{"organization_id":"acme"}`,
		"Idempotency-Key", "w")

	names := map[string]string{"pool_name": "lab", "organization_name": "acme"}
	for path, want := range map[string]map[string]string{
		"/v1/allocations/" + a.ID:       {"held_by_name": "laptop"},
		"/v1/reservations/" + r.ID:      {"made_by_name": "laptop"},
		"/v1/schedules/standup":         {"made_by_name": "laptop"},
		"/v1/nodes/" + node.ID:          {"organization_name": ""},
		"/v1/pools/lab/shares":          {"organization_name": ""},
		"/v1/pools/lab/calendar":        {"organization_name": ""},
		"/v1/events?subject=" + r.ID:    {"actor_name": "laptop"},
		"/v1/decisions?subject=" + r.ID: {"actor_name": "laptop"},
	} {
		got := ask[map[string]any](w, "root", http.MethodGet, path, "")
		if items, ok := got["items"].([]any); ok && strings.Contains(path, "?") {
			got = items[0].(map[string]any)
		}
		for field, name := range names {
			if _, other := want[field]; !other {
				require.Equal(t, name, got[field], "%s %s", path, field)
			}
		}
		for field, name := range want {
			require.Equal(t, name, fmt.Sprint(orEmpty(got[field])), "%s %s", path, field)
		}
	}
	require.Equal(t, "lab", a.PoolName, "what is made has its names, too")
	me := ask[contract.Whoami](w, "root", http.MethodGet, "/v1/whoami", "")
	require.Equal(t, []string{"root", "acme"}, []string{me.KeyName, me.OrganizationName})
	require.Equal(t, "laptop", ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/laptop", "").Name)
	require.Equal(t, 204, w.send("root", http.MethodDelete, "/v1/users/ada@example.org", "").Code)
	require.Equal(t, 200, w.send("root", http.MethodDelete, "/v1/schedules/standup", "").Code)
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// An agent's key, which lists no users, learns none's address by a name that is next to it.
func TestAnAgentLearnsNoAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createAgentKey("bot")
	w.createKey("alice", "viewer")
	ask[contract.User](w, "root", http.MethodPost, "/v1/users", `{"email":"ada@example.com","role":"member"}`)
	const list = "/v1/reservations?user=adda@example.com"
	require.Contains(t, w.refuse("alice", http.MethodGet, list, "").Detail, `Did you mean "ada@example.com"?`)
	require.NotContains(t, w.refuse("bot", http.MethodGet, list, "").Detail, "ada@")
}

// What is not there is told by name, with the one that was probably meant; what
// is there twice, with the candidates.
func TestNamesThatDoNotFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createTenant("other")
	w.createKey("alice", "admin")
	mine := ask[contract.Schedule](w, "alice", http.MethodPost, "/v1/schedules", standup, "Idempotency-Key", "s")
	p := w.refuse("alice", http.MethodGet, "/v1/schedules/stand-up", "")
	require.Equal(t, contract.CodeNotFound, p.Code)
	require.Equal(t, `There is no schedule "stand-up" in organization "acme". Did you mean "standup"?`, p.Detail)
	require.Equal(t, `There is no pool "lap". Did you mean "lab"?`,
		w.refuse("alice", http.MethodGet, "/v1/pools/lap", "").Detail)
	require.Equal(t, `There is no reservation "rsv_1" in organization "acme".`,
		w.refuse("alice", http.MethodGet, "/v1/reservations/rsv_1", "").Detail)
	for _, list := range []string{"allocations", "reservations", "nodes", "gpus", "decisions", "forecasts"} {
		p = w.refuse("alice", http.MethodGet, "/v1/"+list+"?pool=lap", "")
		require.Equal(t, contract.CodeInvalidParameter, p.Code, list)
		require.Equal(t, `There is no pool "lap". Did you mean "lab"?`, p.Detail,
			"what was meant is looked up after the list's own transaction")
	}
	for _, body := range []struct{ path, text string }{{"/v1/allocations", `{"pool":"lap","gpus":1}`},
		{"/v1/schedules", strings.Replace(standup, "lab", "lap", 1)}} {
		p = w.refuse("alice", http.MethodPost, body.path, body.text, "Idempotency-Key", "b")
		require.Equal(t, contract.CodeValidationFailed, p.Code)
		require.Equal(t, `There is no pool "lap". Did you mean "lab"?`, p.Detail)
		require.Equal(t, "/pool", p.Errors[0].Pointer)
	}

	second := ask[contract.Schedule](w, "other", http.MethodPost, "/v1/schedules", standup, "Idempotency-Key", "s")
	require.Equal(t, mine.ID, ask[contract.Schedule](w, "alice", http.MethodGet, "/v1/schedules/standup", "").ID,
		"each sees its own")
	p = w.refuse("root", http.MethodGet, "/v1/schedules/standup", "")
	require.Equal(t, contract.CodeAmbiguousName, p.Code)
	require.Equal(t, []string{mine.ID, second.ID}, p.Errors[0].Allowed)
	require.Contains(t, fmt.Sprint(p.Fixes), "organization other")
}

// Another tenant's name gets the same answer, to the byte, as one that nobody
// has, and no advice gives it away.
func TestNamesOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createTenant("other")
	w.createKey("secretkey", "member")
	ask[contract.Schedule](w, "root", http.MethodPost, "/v1/schedules",
		strings.Replace(standup, "standup", "secretplan", 1), "Idempotency-Key", "s")
	ask[contract.User](w, "root", http.MethodPost, "/v1/users", `{"email":"secret@example.org","role":"member"}`,
		"Idempotency-Key", "u")
	before := w.journalLength()
	for i, c := range []struct{ method, path, name, body string }{
		{http.MethodGet, "/v1/schedules/%s", "secretplan", ""},
		{http.MethodDelete, "/v1/schedules/%s", "secretplan", ""},
		{http.MethodGet, "/v1/schedules/%s/occurrences", "secretplan", ""},
		{http.MethodPost, "/v1/schedules/%s/pause", "secretplan", ""},
		{http.MethodDelete, "/v1/keys/%s", "secretkey", ""},
		{http.MethodPatch, "/v1/users/%s", "secret@example.org", `{"active":false}`},
		{http.MethodDelete, "/v1/users/%s", "secret@example.org", ""},
		{http.MethodPut, "/v1/users/%s/caps", "secret@example.org", `{}`},
		{http.MethodGet, "/v1/organizations/%s", "acme", ""},
		{http.MethodGet, "/v1/organizations/%s/usage", "acme", ""},
		{http.MethodGet, "/v1/allocations?organization=%s", "acme", ""},
		{http.MethodGet, "/v1/events?organization=%s", "acme", ""},
		{http.MethodGet, "/v1/events/stream?organization=%s", "acme", ""},
		{http.MethodGet, "/v1/reports/costs?organization=%s", "acme", ""},
		{http.MethodGet, "/v1/allocations?held_by=%s", "secretkey", ""},
		{http.MethodGet, "/v1/reservations?made_by=%s", "secretplan", ""},
		{http.MethodPost, "/v1/users", "acme", `{"email":"x@example.org","role":"member","organization_id":"%s"}`},
		{http.MethodPost, "/v1/keys", "acme", `{"name":"x","kind":"person","role":"viewer","organization_id":"%s"}`},
		{http.MethodPost, "/v1/keys", "secret@example.org",
			`{"name":"x","kind":"person","role":"viewer","user_id":"%s"}`},
		{http.MethodPost, "/v1/prewarm/pause", "acme", `{"organization_id":"%s"}`},
	} {
		unknown := strings.Repeat("z", len(c.name))
		ask := func(name, key string) (int, string) {
			out := w.send("other", c.method, insertID(c.path, url.QueryEscape(name)), insertID(c.body, name),
				"If-Match",
				`"1"`, "Idempotency-Key", fmt.Sprint(key, i))
			return out.Code, strings.ReplaceAll(bodyOf(t, out.Body.Bytes()), name, "%s")
		}
		status, body := ask(c.name, "theirs")
		otherStatus, otherBody := ask(unknown, "nobodys")
		require.GreaterOrEqual(t, status, 400, c.path)
		require.Equal(t, otherStatus, status, c.path)
		require.Equal(t, otherBody, body, "%s %s", c.method, c.path)
	}
	for _, near := range []string{"/v1/schedules/secretplam", "/v1/organizations/acne",
		"/v1/allocations?held_by=secretkex"} {
		require.NotContains(t, w.refuse("other", http.MethodGet, near, "").Detail, "mean", near)
	}
	require.Equal(t, before, w.journalLength())
	for _, e := range ask[contract.EventList](w, "other", http.MethodGet, "/v1/events", "").Items {
		require.NotEqual(t, "root", e.ActorName, "an operator keeps the names of its keys")
	}
}

// The newest comes first, and what is over only when it is asked for.
func TestListsShowWhatIsLiveAndNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	var made []string
	for i := range 5 {
		made = append([]string{ask[contract.Allocation](w, "root", http.MethodPost, "/v1/allocations",
			`{"pool":"lab","gpus":1}`, "Idempotency-Key", fmt.Sprint(i)).ID}, made...)
	}
	var reserved []string
	for i := range 5 {
		reserved = append([]string{ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
			`{"pool":"lab","gpus":1,"start":"2026-03-03T10:00:00Z","end":"2026-03-03T11:00:00Z"}`, "Idempotency-Key",
			fmt.Sprint(i)).ID}, reserved...)
		w.clock.Advance(1)
	}
	ids := func(path string) (ids []string) {
		for cursor := ""; ; {
			page := ask[contract.List[contract.Allocation]](w, "root", http.MethodGet, path+"&limit=2"+cursor, "")
			for _, a := range page.Items {
				ids = append(ids, a.ID)
			}
			if cursor = "&cursor=" + page.NextCursor; page.NextCursor == "" {
				return ids
			}
		}
	}
	require.Equal(t, made, ids("/v1/allocations?pool=lab"))
	require.Equal(t, reserved, ids("/v1/reservations?pool=lab"))
	ask[contract.Allocation](w, "root", http.MethodDelete, "/v1/allocations/"+made[1], "", "Idempotency-Key", "d")
	ask[contract.Reservation](w, "root", http.MethodDelete, "/v1/reservations/"+reserved[1], "", "Idempotency-Key", "d")
	require.Equal(t, append([]string{made[0]}, made[2:]...), ids("/v1/allocations?pool=lab"))
	require.Equal(t, append([]string{reserved[0]}, reserved[2:]...), ids("/v1/reservations?pool=lab"))
	require.Equal(t, made, ids("/v1/allocations?all=true"))
	require.Equal(t, reserved, ids("/v1/reservations?all=true"))
	require.Equal(t, made[1:2], ids("/v1/allocations?state=cancelled"))
}

// Every field of an answer that identifies a pool, an organization or a maker
// has its name beside it.
func TestEveryIdHasItsName(t *testing.T) {
	t.Parallel()
	pairs := map[string]string{"PoolID": "PoolName", "OrganizationID": "OrganizationName", "MadeBy": "MadeByName",
		"HeldBy": "HeldByName", "Actor": "ActorName"}
	for _, answer := range []any{
		contract.Allocation{}, contract.Reservation{}, contract.Schedule{}, contract.Node{}, contract.GPU{},
		contract.Event{}, contract.Decision{},
		contract.Key{}, contract.User{}, contract.Whoami{}, contract.CostLine{}, contract.Forecast{}, contract.Share{},
		contract.Shares{}, contract.Quota{},
		contract.QuotaUsage{}, contract.PromiseAtRisk{}, contract.PrewarmPause{}, contract.Calendar{},
		contract.Recommendation{}, contract.Explanation{}, contract.Offer{},
	} {
		typ := reflect.TypeOf(answer)
		for id, name := range pairs {
			if _, ok := typ.FieldByName(id); ok {
				_, named := typ.FieldByName(name)
				require.True(t, named, "%s has %s without %s", typ, id, name)
			}
		}
	}
}
