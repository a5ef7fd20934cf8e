package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

func inUse(t *testing.T, err error) map[string]int {
	t.Helper()
	var e *ledger.InUseError
	require.ErrorAs(t, err, &e)
	count := map[string]int{}
	for _, use := range e.In {
		require.NotEmpty(t, use.IDs)
		require.Contains(t, err.Error(), use.Text())
		count[use.Noun] = use.Count
	}
	return count
}

// A pool goes when nothing is left in it, and tells of everything that is. Its
// history stays readable, and another may take its name.
func TestDeletePool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alice := w.newPerson("acme")
	a := w.mustAllocate(alice, 2)
	r := w.mustReserve(alice, 2, w.windowAfter(2*time.Hour, 3*time.Hour))
	s, err := w.ledger.CreateSchedule(t.Context(), alice, ledger.Schedule{PoolID: "lab", Name: "standup", GPUs: 1,
		StartLocal: "2026-04-02T09:00:00", Timezone: "UTC", RRule: "FREQ=DAILY", Length: time.Hour, DSTPolicy: "shift"})
	require.NoError(t, err)
	w.pass(boot)

	require.ErrorIs(t, w.ledger.DeletePool(t.Context(), alice, "lab"), ledger.ErrDenied)
	require.Equal(t, map[string]int{"nodes": 1, "reservations": 1, "allocations": 1, "schedules": 1},
		inUse(t, w.ledger.DeletePool(t.Context(), operator, "lab")))

	_, err = w.ledger.Release(t.Context(), alice, a.ID)
	require.NoError(t, err)
	_, err = w.ledger.CancelReservation(t.Context(), alice, r.ID)
	require.NoError(t, err)
	_, _, err = w.ledger.DeleteSchedule(t.Context(), alice, s.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"nodes": 1}, inUse(t, w.ledger.DeletePool(t.Context(), operator, "lab")))
	w.pass(time.Hour) // its node goes
	require.NoError(t, w.ledger.DeletePool(t.Context(), operator, "lab"))
	require.Len(t, w.readEvents("pool.deleted"), 1)

	require.ErrorIs(t, w.ledger.DeletePool(t.Context(), operator, "lab"), ledger.ErrNotFound)
	require.ErrorIs(t, w.ledger.DeletePool(t.Context(), operator, w.pool.ID), ledger.ErrNotFound)
	var invalid *ledger.InvalidError
	for name, req := range map[string]ledger.AllocateRequest{
		"name": {Pool: "lab", GPUs: 1, Lease: time.Hour}, "id": {Pool: w.pool.ID, GPUs: 1, Lease: time.Hour},
		"model": {Model: "h100", GPUs: 1, Lease: time.Hour},
	} {
		_, err = w.ledger.Allocate(t.Context(), alice, req)
		require.ErrorAs(t, err, &invalid, name)
	}
	_, err = w.ledger.CreateSchedule(t.Context(), alice, ledger.Schedule{PoolID: w.pool.ID, Name: "late", GPUs: 1,
		StartLocal: "2026-04-02T09:00:00", Timezone: "UTC", RRule: "FREQ=DAILY", Length: time.Hour, DSTPolicy: "shift"})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, a.ID, w.readAllocation(a.ID).ID, "history stays")
	w.pass(time.Hour)

	again, err := w.ledger.CreatePool(t.Context(), operator, capacity.Pool{
		Name: "lab", Provisioner: "sim", Model: "h100", PerNode: 2, MemoryMiB: 81920, Price: 2 * money.USD, MaxNodes: 4,
		Simulated: true,
		Timers:    capacity.Timers{WarmHold: 10 * time.Minute, IdleRelease: 10 * time.Minute, MaxLease: 24 * time.Hour},
	}, learned.BootTimes{Prior50: boot, Prior95: boot})
	require.NoError(t, err, "the name is free")
	require.Equal(t, again.ID, w.mustAllocate(alice, 2).PoolID)
}

// A tenant goes when it holds nothing, and its people and keys with it.
func TestDeleteOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alice := w.newPerson("acme")
	ada, err := w.ledger.CreateUser(t.Context(), operator,
		ledger.User{OrganizationID: alice.OrganizationID, Email: "ada@example.org", Role: ledger.Admin})
	require.NoError(t, err)
	key, err := w.ledger.CreateKey(t.Context(), operator,
		ledger.Key{ID: "key_1", OrganizationID: alice.OrganizationID, UserID: ada.ID,
			Name: "laptop", Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte{1}})
	require.NoError(t, err)
	_, err = w.ledger.PausePrewarming(t.Context(), operator, alice.OrganizationID, "", time.Time{})
	require.NoError(t, err)
	a := w.mustAllocate(alice, 2)

	_, err = w.ledger.DeleteOrganization(t.Context(), alice, alice.OrganizationID)
	require.ErrorIs(t, err, ledger.ErrDenied)
	_, err = w.ledger.DeleteOrganization(t.Context(), operator, alice.OrganizationID)
	require.Equal(t, map[string]int{"allocations": 1}, inUse(t, err))
	_, err = w.ledger.Release(t.Context(), alice, a.ID)
	require.NoError(t, err)
	ended, err := w.ledger.DeleteOrganization(t.Context(), operator, alice.OrganizationID)
	require.NoError(t, err)
	require.Equal(t, []string{key.ID}, ended)

	_, err = w.ledger.Authenticate(t.Context(), key.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, err = w.ledger.Allocate(t.Context(), alice, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour})
	require.Error(t, err, "a key that was looked up before")
	_, err = w.ledger.DeleteOrganization(t.Context(), operator, alice.OrganizationID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, err = w.ledger.CreateUser(t.Context(), operator,
		ledger.User{OrganizationID: alice.OrganizationID, Email: "bob@example.org", Role: ledger.Admin})
	require.ErrorIs(t, err, ledger.ErrNotFound)
	for _, kind := range []string{"organization.deleted", "user.deleted", "key.revoked"} {
		require.Len(t, w.readEvents(kind), 1, kind)
	}
	w.read(func(r ledger.Reader) error {
		pauses, err := r.Pauses()
		require.Empty(t, pauses)
		return err
	})
	w.newPerson("acme") // the name is free

	own := operator
	own.OrganizationID = w.newPerson("home").OrganizationID
	var state *ledger.StateError
	_, err = w.ledger.DeleteOrganization(t.Context(), own, own.OrganizationID)
	require.ErrorAs(t, err, &state, "not the one it stands on")
}

// Who lends to others of its cohort stays while they hold what they borrowed.
func TestDeleteOrganizationThatLends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lender := w.newLimitedPerson("lender", quota.Limits{GPUs: 4, SpeculationPerDay: money.USD, Cohort: "research"})
	borrower := w.newLimitedPerson("borrower", quota.Limits{GPUs: 2, SpeculationPerDay: money.USD, Cohort: "research"})
	a := w.mustAllocate(borrower, 4)
	var risk *ledger.PromisesAtRiskError
	_, err := w.ledger.DeleteOrganization(t.Context(), operator, lender.OrganizationID)
	require.ErrorAs(t, err, &risk)
	require.Equal(t, a.ID, risk.Promises[0].ID)
	_, err = w.ledger.Release(t.Context(), borrower, a.ID)
	require.NoError(t, err)
	_, err = w.ledger.DeleteOrganization(t.Context(), operator, lender.OrganizationID)
	require.NoError(t, err)
}

// A person's keys end with them, and nobody else's.
func TestDeleteUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.newPerson("acme")
	admin := acme
	admin.Role = ledger.Admin
	person := func(email, key string) ledger.User {
		user, err := w.ledger.CreateUser(t.Context(), operator,
			ledger.User{OrganizationID: acme.OrganizationID, Email: email, Role: ledger.Member})
		require.NoError(t, err)
		_, err = w.ledger.CreateKey(t.Context(), operator,
			ledger.Key{ID: key, OrganizationID: acme.OrganizationID, UserID: user.ID,
				Name: "laptop", Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte{1}})
		require.NoError(t, err)
		return user
	}
	ada := person("ada@example.org", "key_ada")
	person("bob@example.org", "key_bob")
	other := w.newPerson("other")
	other.Role = ledger.Admin
	_, err := w.ledger.DeleteUser(t.Context(), other, ada.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, err = w.ledger.DeleteUser(t.Context(), acme, ada.ID)
	require.ErrorIs(t, err, ledger.ErrDenied)
	ended, err := w.ledger.DeleteUser(t.Context(), admin, ada.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"key_ada"}, ended)
	_, err = w.ledger.Authenticate(t.Context(), "key_ada")
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, err = w.ledger.Authenticate(t.Context(), "key_bob")
	require.NoError(t, err)
	_, err = w.ledger.DeleteUser(t.Context(), admin, ada.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	person("ada@example.org", "key_ada2") // the address is free
}
