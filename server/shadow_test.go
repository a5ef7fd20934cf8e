package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// plantRows stores what no verb would store any more.
func (w *world) plantRows(c ledger.Change) {
	w.t.Helper()
	require.NoError(w.t, w.ledger.Store().InTx(w.t.Context(),
		func(tx ledger.Tx) error { return tx.Save(c) }))
}

// copyOf reads what is copied to be planted under another id.
func copyOf[T any](w *world, read func(ledger.Reader) (T, error)) (out T) {
	w.t.Helper()
	require.NoError(w.t, w.ledger.Store().Read(w.t.Context(), func(r ledger.Reader) (err error) {
		out, err = read(r)
		return err
	}))
	return out
}

// newShadowedWorld is a world where each thing that has a name is in the shadow of
// another one, which has the first one's id as its name, as older versions took it.
func newShadowedWorld(t *testing.T) (w *world, victims map[ledger.Noun]string) {
	w = newWorld(t)
	all := ledger.Scope{All: true}
	beta := w.createTenant("beta")
	pool := w.createPool()
	key := w.createKey("victim", "member")
	person := ask[contract.User](w, "root", http.MethodPost, "/v1/users", `{"email":"ada@example.org","role":"viewer"}`)
	s := ask[contract.Schedule](w, "victim", http.MethodPost, "/v1/schedules", standup, "Idempotency-Key", "s")

	k := copyOf(w, func(r ledger.Reader) (ledger.Key, error) { return r.Key(all, key.ID) })
	k.ID, k.Name, k.OrganizationID, k.Version = "decoy00001", key.ID, beta.ID, 0
	u := copyOf(w, func(r ledger.Reader) (ledger.User, error) { return r.User(all, person.ID) })
	u.ID, u.Email, u.OrganizationID, u.Version = "usr_decoy", person.ID, beta.ID, 0
	o := copyOf(w, func(r ledger.Reader) (ledger.Organization, error) {
		return r.Organization(all,
			key.OrganizationID)
	})
	o.ID, o.Name, o.Version = "org_decoy", key.OrganizationID, 0
	p := copyOf(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool(pool.ID) })
	p.ID, p.Name, p.Version = "pol_decoy", pool.ID, 0
	other := copyOf(w, func(r ledger.Reader) (ledger.Schedule, error) { return r.Schedule(all, s.ID) })
	other.ID, other.Name, other.OrganizationID, other.Version = "sch_decoy", s.ID, beta.ID, 0
	byKey := other
	byKey.ID, byKey.Name = "sch_decoy2", key.ID
	w.plantRows(ledger.Change{Keys: []ledger.Key{k}, Users: []ledger.User{u}, Organizations: []ledger.Organization{o},
		Pools:     []ledger.Pool{p},
		Schedules: []ledger.Schedule{other, byKey}})
	return w, map[ledger.Noun]string{ledger.NounKey: key.ID, ledger.NounUser: person.ID,
		ledger.NounOrganization: key.OrganizationID,
		ledger.NounPool:         pool.ID, ledger.NounSchedule: s.ID}
}

// Nobody hides a thing behind another one's name: its id always finds it, in
// paths, queries and bodies.
func TestNoNameShadowsAnId(t *testing.T) {
	t.Parallel()
	w, id := newShadowedWorld(t)
	for path, want := range map[string]string{
		"/v1/organizations/" + id[ledger.NounOrganization]: id[ledger.NounOrganization],
		"/v1/pools/" + id[ledger.NounPool]:                 id[ledger.NounPool],
		"/v1/schedules/" + id[ledger.NounSchedule]:         id[ledger.NounSchedule],
	} {
		require.Equal(t, want, ask[contract.Pool](w, "root", http.MethodGet, path, "").ID, path)
	}
	require.Equal(t, "ada@example.org", ask[contract.User](w, "root", http.MethodPatch,
		"/v1/users/"+id[ledger.NounUser], `{"active":false}`, "If-Match", `"1"`).Email)

	a := ask[contract.Allocation](w, "victim", http.MethodPost, "/v1/allocations",
		`{"pool":"`+id[ledger.NounPool]+`","gpus":1}`, "Idempotency-Key", "a")
	r := ask[contract.Reservation](w, "victim", http.MethodPost, "/v1/reservations",
		`{"pool":"`+id[ledger.NounPool]+`","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`,
		"Idempotency-Key", "r")
	require.Equal(t, id[ledger.NounPool], a.PoolID)
	for filter, want := range map[string]string{
		"/v1/allocations?held_by=" + id[ledger.NounKey]:                        a.ID,
		"/v1/reservations?made_by=" + id[ledger.NounKey]:                       r.ID,
		"/v1/allocations?pool=" + id[ledger.NounPool]:                          a.ID,
		"/v1/allocations?organization=" + id[ledger.NounOrganization]:          a.ID,
		"/v1/schedules?organization=" + id[ledger.NounOrganization]:            id[ledger.NounSchedule],
		"/v1/users?organization=" + id[ledger.NounOrganization]:                id[ledger.NounUser],
		"/v1/reservations?all=true&made_by=" + id[ledger.NounKey] + "&limit=1": r.ID,
	} {
		got := ask[contract.List[contract.Allocation]](w, "root", http.MethodGet, filter, "").Items
		require.Len(t, got, 1, filter)
		require.Equal(t, want, got[0].ID, filter)
	}
	made := ask[contract.KeyCreated](w, "root", http.MethodPost, "/v1/keys",
		`{"name":"new","kind":"person","role":"viewer","organization_id":"`+id[ledger.NounOrganization]+`","user_id":"`+
			id[ledger.NounUser]+`"}`)
	require.Equal(t, []string{id[ledger.NounOrganization], id[ledger.NounUser]},
		[]string{made.Key.OrganizationID, made.Key.UserID})
}

// What a revocation or an adoption is told by id happens to that key, whoever has
// it for a name.
func TestTheKeyThatIsNamedByItsIdIsTheOneThatEnds(t *testing.T) {
	t.Parallel()
	w, id := newShadowedWorld(t)
	key := id[ledger.NounKey]
	require.Equal(t, key, ask[contract.Key](w, "root", http.MethodPost, "/v1/keys/"+key+"/adopt", "").ID)
	require.Equal(t, key, ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+key, "").ID)
	require.Equal(t, 401, w.send("victim", http.MethodGet, "/v1/whoami", "").Code)
	require.Equal(t, key, ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+key, "").ID,
		"repeated, it ends no other one")
	require.Equal(t, 404, w.send("beta", http.MethodDelete, "/v1/schedules/"+id[ledger.NounSchedule], "").Code,
		"another tenant's id finds nothing, also where something of one's own has it for a name")
}

// Names in the form of an id, or that are one, are refused wherever things are named.
func TestNamesDoNotHaveTheFormOfAnId(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createKey("admin", "admin")
	root := ask[contract.Whoami](w, "root", http.MethodGet, "/v1/whoami", "").KeyID
	for _, name := range []string{"rsv_01ke4j5m3zf8k9v7q2x6t0b1cd", "key_00000000000000000000000001", "Ab3dE5fG7h",
		root} {
		for path, body := range map[string]string{
			"/v1/keys": `{"kind":"person","role":"viewer","name":"` + name + `"}`,
			"/v1/schedules": `{"pool":"lab","gpus":1,` +
				`"start_local":"2026-03-02T09:00:00","timezone":"UTC","rrule":"FREQ=DAILY",` +
				`"duration_seconds":60,"name":"` + name + `"}`,
			"/v1/organizations": `{"limits":{"max_gpus":1,` +
				`"speculation_per_day":{"amount":"1","currency":"USD"}},"name":"` + name + `"}`,
			"/v1/users": `{"role":"viewer","email":"` + name + `"}`,
			"/v1/pools": `{"provisioner":"sim","model":"a100-80g","gpu_memory_mib":81920,` +
				`"gpus_per_node":4,"price_per_node_hour":{"amount":"1","currency":"USD"},` +
				`"max_nodes":1,"name":"` + name + `"}`,
		} {
			p := w.refuse("root", http.MethodPost, path, body, "Idempotency-Key", "n")
			require.Equal(t, contract.CodeValidationFailed, p.Code, "%s %s", path, name)
			require.NotEmpty(t, p.Errors, path)
			require.Contains(t, []string{"/name", "/email"}, p.Errors[0].Pointer, "%s %s", path, name)
		}
	}
	w.createKey("production", "viewer")
	w.createKey("Laptop2026", "viewer")
}

func TestAPersonsAddressIsBare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, email := range []string{"Evil <a@b.cc>", "<a@b.cc>", "a@b.cc (x)"} {
		p := w.refuse("root", http.MethodPost, "/v1/users", `{"role":"viewer","email":"`+email+`"}`)
		require.Equal(t, "/email", p.Errors[0].Pointer, email)
	}
}
