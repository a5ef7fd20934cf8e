package verbs_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// keyring is a world with keys, and what the test itself remembers of them.
type keyring struct {
	*world
	org   string
	made  []string          // ids, in the order in which they were made
	maker map[string]string // key → the key it rests on; "" once it was adopted
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	k := &keyring{world: newWorld(t), maker: map[string]string{}}
	made, err := k.ledger.Bootstrap(t.Context(), "acme", quota.Limits{GPUs: 100},
		ledger.Key{ID: "root", Name: "first key", Hash: []byte{1}})
	require.NoError(t, err)
	require.True(t, made)
	k.made = []string{"root"}
	k.org = k.readKey("root").OrganizationID
	return k
}

func (k *keyring) readKey(id string) ledger.Key {
	k.Helper()
	var key ledger.Key
	require.NoError(k, k.store.Read(k.Context(), func(r ledger.Reader) (err error) {
		key, err = r.Key(ledger.Scope{All: true}, id)
		return err
	}))
	return key
}

// actorOf is who a key speaks for; false: it may not be used.
func (k *keyring) actorOf(id string) (ledger.Actor, bool) {
	k.Helper()
	c, err := k.ledger.Authenticate(k.Context(), id)
	if err != nil {
		require.ErrorIs(k, err, ledger.ErrNotFound)
		return ledger.Actor{}, false
	}
	return c.Actor(), true
}

func (k *keyring) mustActor(id string) ledger.Actor {
	k.Helper()
	actor, ok := k.actorOf(id)
	require.True(k, ok, id)
	return actor
}

// MintKey makes a key of a person with another one.
func (k *keyring) mintKey(maker, id string, role ledger.Role, change ...func(*ledger.Key)) error {
	k.Helper()
	key := ledger.Key{ID: id, OrganizationID: k.org, Name: id, Kind: ledger.PersonKey, Role: role, Hash: []byte{1}}
	for _, f := range change {
		f(&key)
	}
	_, err := k.ledger.CreateKey(k.Context(), k.mustActor(maker), key)
	if err == nil {
		k.made, k.maker[id] = append(k.made, id), maker
	}
	return err
}

func withGPUCap(gpus int) func(*ledger.Key) {
	return func(k *ledger.Key) {
		k.Caps = quota.Caps{MaxGPUs: gpus, MaxPerDay: 1000 * money.USD, MaxLead: 48 * time.Hour,
			MaxWindow: 24 * time.Hour}
	}
}

func (k *keyring) addUser(email string, role ledger.Role) ledger.User {
	k.Helper()
	u, err := k.ledger.CreateUser(k.Context(), operator, ledger.User{OrganizationID: k.org, Email: email, Role: role})
	require.NoError(k, err)
	return u
}

func (k *keyring) reserveAs(id string, gpus int) error {
	_, err := k.ledger.Reserve(k.Context(), k.mustActor(id),
		ledger.ReserveRequest{Pool: "lab", GPUs: gpus, Window: k.windowAfter(2*time.Hour, 3*time.Hour), Name: "x"})
	return err
}

func TestNobodyEndsAKeyOfARoleAboveTheirOwn(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	require.NoError(t, k.mintKey("root", "admin", ledger.Admin))
	require.NoError(t, k.mintKey("root", "second", ledger.Operator))
	_, err := k.ledger.RevokeKey(t.Context(), k.mustActor("admin"), "second")
	require.ErrorIs(t, err, ledger.ErrDenied)
	boss := k.addUser("boss@example.org", ledger.Admin)
	require.NoError(t, k.mintKey("root", "viewer", ledger.Viewer))
	_, err = k.ledger.UpdateUser(t.Context(), k.mustActor("viewer"), boss.ID, 1, ledger.Viewer, false)
	require.ErrorIs(t, err, ledger.ErrDenied)
	_, err = k.ledger.RevokeKey(t.Context(), k.mustActor("second"), "admin")
	require.NoError(t, err)
}

func TestTheLastOperatorStays(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	_, err := k.ledger.RevokeKey(t.Context(), k.mustActor("root"), "root")
	require.ErrorIs(t, err, ledger.ErrLastOperator)

	require.NoError(t, k.mintKey("root", "heir", ledger.Operator))
	_, err = k.ledger.RevokeKey(t.Context(), k.mustActor("heir"), "root")
	require.ErrorIs(t, err, ledger.ErrLastOperator, "the heir rests on it and would end with it")
	require.NoError(t, k.mintKey("root", "brief", ledger.Operator,
		func(key *ledger.Key) { key.ExpiresAt = k.clock.Now().Add(time.Hour) }))
	_, err = k.ledger.AdoptKey(t.Context(), k.mustActor("root"), "brief")
	require.NoError(t, err)
	_, err = k.ledger.RevokeKey(t.Context(), k.mustActor("brief"), "root")
	require.ErrorIs(t, err, ledger.ErrLastOperator, "only one that expires would be left")

	_, err = k.ledger.AdoptKey(t.Context(), k.mustActor("heir"), "heir")
	require.ErrorIs(t, err, ledger.ErrDenied, "nobody adopts themselves")
	_, err = k.ledger.AdoptKey(t.Context(), k.mustActor("root"), "heir")
	require.NoError(t, err)
	_, err = k.ledger.RevokeKey(t.Context(), k.mustActor("heir"), "root")
	require.NoError(t, err)
	require.Equal(t, ledger.Operator, k.mustActor("heir").Role)

	recovered, err := k.ledger.RecoverOperator(t.Context(),
		ledger.Key{ID: "found", Name: "recovered", Hash: []byte{1}, ExpiresAt: k.clock.Now()})
	require.NoError(t, err)
	require.Zero(t, recovered.ExpiresAt)
	_, err = k.ledger.RevokeKey(t.Context(), k.mustActor("found"), "heir")
	require.NoError(t, err)
}

// The last operator's key that lasts goes with no organization either.
func TestAnOrganizationTakesNoLastOperatorAlong(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	other, err := k.ledger.CreateOrganization(t.Context(), operator, "other", quota.Limits{GPUs: 8})
	require.NoError(t, err)
	require.NoError(t, k.mintKey("root", "abroad", ledger.Operator, func(key *ledger.Key) {
		key.OrganizationID, key.ExpiresAt = other.ID, k.clock.Now().Add(time.Hour)
	}))
	_, err = k.ledger.AdoptKey(t.Context(), k.mustActor("root"), "abroad")
	require.NoError(t, err)
	_, err = k.ledger.DeleteOrganization(t.Context(), k.mustActor("abroad"), k.org)
	require.ErrorIs(t, err, ledger.ErrLastOperator)
	_, err = k.ledger.DeleteOrganization(t.Context(), k.mustActor("root"), other.ID)
	require.NoError(t, err)
	require.Equal(t, ledger.Operator, k.mustActor("root").Role)
}

func TestAKeyEndsWithItsMaker(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	person := k.addUser("ada@example.org", ledger.Admin)
	require.NoError(t, k.mintKey("root", "ada", ledger.Admin, func(key *ledger.Key) { key.UserID = person.ID }))
	require.NoError(t, k.mintKey("ada", "script", ledger.Admin))
	require.NoError(t, k.mintKey("script", "job", ledger.Member))
	require.NoError(t, k.mintKey("ada", "kept", ledger.Member))
	_, err := k.ledger.AdoptKey(t.Context(), k.mustActor("ada"), "kept")
	require.ErrorIs(t, err, ledger.ErrDenied, "only an operator adopts")
	_, err = k.ledger.AdoptKey(t.Context(), k.mustActor("root"), "kept")
	require.NoError(t, err)

	_, err = k.ledger.UpdateUser(t.Context(), operator, person.ID, 1, ledger.Viewer, true)
	require.NoError(t, err)
	require.Equal(t, ledger.Viewer, k.mustActor("job").Role, "rights are its maker's present ones at most")
	_, err = k.ledger.UpdateUser(t.Context(), operator, person.ID, 2, ledger.Admin, false)
	require.NoError(t, err)
	for _, id := range []string{"ada", "script", "job"} {
		_, ok := k.actorOf(id)
		require.False(t, ok, id)
	}
	require.Equal(t, ledger.Member, k.mustActor("kept").Role)
}

func TestAKeyExceedsItsMakerInNothing(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	soon := k.clock.Now().Add(time.Minute)
	require.NoError(t, k.mintKey("root", "short", ledger.Admin, func(key *ledger.Key) { key.ExpiresAt = soon }))
	for name, end := range map[string]time.Time{"never": {}, "later": soon.Add(time.Second)} {
		var invalid *ledger.InvalidError
		require.ErrorAs(t, k.mintKey("short", name, ledger.Member, func(key *ledger.Key) { key.ExpiresAt = end }),
			&invalid, name)
		require.Equal(t, "expires_in_seconds", invalid.Field)
	}
	require.NoError(t, k.mintKey("root", "small", ledger.Admin, withGPUCap(1)))
	var invalid *ledger.InvalidError
	require.ErrorAs(t, k.mintKey("small", "large", ledger.Member, withGPUCap(2)), &invalid)
	require.Equal(t, "caps.max_gpus", invalid.Field)
	other, err := k.ledger.CreateOrganization(t.Context(), operator, "other", quota.Limits{GPUs: 8})
	require.NoError(t, err)
	require.NoError(t, k.mintKey("root", "roving", ledger.Operator, withGPUCap(1)))
	require.ErrorAs(t, k.mintKey("roving", "abroad", ledger.Member,
		func(key *ledger.Key) { key.OrganizationID = other.ID }), &invalid,
		"its caps are not counted there")
	_, err = k.ledger.AdoptKey(t.Context(), k.mustActor("roving"), "small")
	require.ErrorIs(t, err, ledger.ErrDenied, "caps are not shed by who has some")
	require.NoError(t, k.mintKey("small", "bare", ledger.Member))
	require.Equal(t, k.readKey("small").Caps, k.readKey("bare").Caps, "caps are inherited")
}

// Ten keys of a key that may hold one GPU hold one GPU, not ten; what they
// schedule is theirs too.
func TestCapsHoldForAllThatWasMade(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	require.NoError(t, k.mintKey("root", "one", ledger.Admin, withGPUCap(1)))
	held := 0
	for i := range 10 {
		id := "child-" + strconv.Itoa(i)
		require.NoError(t, k.mintKey("one", id, ledger.Member))
		if err := k.reserveAs(id, 1); err == nil {
			held++
		} else {
			var refused *ledger.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "key_cap_exceeded", string(refused.Decision.Reasons[0].Code))
		}
	}
	require.Equal(t, 1, held)
	require.Error(t, k.reserveAs("one", 1), "the maker holds what its keys hold")
	_, err := k.ledger.AdoptKey(t.Context(), k.mustActor("root"), "child-9")
	require.NoError(t, err)
	require.NoError(t, k.reserveAs("child-9", 1), "it has a cap of its own now")

	_, err = k.ledger.CreateSchedule(t.Context(), k.mustActor("child-1"), dailySchedule(2))
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused, "no date could ever be within the cap")
	require.Equal(t, "key_cap_exceeded", string(refused.Decision.Reasons[0].Code))
	k.pass(time.Minute)
	require.Empty(t,
		k.liveReservations(func(r reservation.Reservation) bool { return r.Origin == reservation.FromSchedule }))
}

func dailySchedule(gpus int) ledger.Schedule {
	return ledger.Schedule{PoolID: "lab", Name: "daily", GPUs: gpus, StartLocal: "2026-03-03T10:00:00", Timezone: "UTC",
		RRule:  "FREQ=DAILY",
		Length: time.Hour, DSTPolicy: "shift"}
}

// A cap on how far ahead may be reserved delays when a date is asked for. Asked
// for earlier, every date beyond it would be refused once and for all.
func TestDatesAreAskedForAsLateAsCapsDemand(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	require.NoError(t, k.mintKey("root", "one", ledger.Member, withGPUCap(1)))
	s, err := k.ledger.CreateSchedule(t.Context(), k.mustActor("one"), dailySchedule(1))
	require.NoError(t, err)
	require.Len(t, k.world.liveOf(s.ID), 1, "within two days")
	require.Equal(t, "booked", s.Dates[0].State)
	require.Equal(t, ledger.DateComing, s.Dates[1].State)
	require.Equal(t, s.Dates[1].Start.Add(-48*time.Hour), s.Dates[1].AskedAt)
	k.pass(48 * time.Hour)
	require.Empty(t, k.readEvents("schedule.refused"))
	require.Len(t, k.readEvents("reservation.booked"), 3)

	_, err = k.ledger.CreateSchedule(t.Context(), k.mustActor("one"), dailySchedule(2))
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
}

func (k *keyring) liveReservations(which func(reservation.Reservation) bool) []reservation.Reservation {
	k.Helper()
	var all []reservation.Reservation
	require.NoError(k, k.store.Read(k.Context(), func(r ledger.Reader) (err error) {
		all, err = r.Reservations(ledger.Scope{All: true}, ledger.BookingFilter{Live: true}, ledger.Page{Limit: 500})
		return err
	}))
	return slices.DeleteFunc(all, func(r reservation.Reservation) bool { return !which(r) })
}

// A person's caps hold for keys that were made with a key of theirs, and nobody
// loosens the caps that bind themselves.
func TestAPersonsCapsHoldForWhatTheirKeysMade(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	ada := k.addUser("ada@example.org", ledger.Admin)
	caps := quota.Caps{MaxGPUs: 1, MaxPerDay: 1000 * money.USD, MaxLead: 48 * time.Hour, MaxWindow: 24 * time.Hour}
	_, err := k.ledger.SetUserCaps(t.Context(), operator, ada.ID, 1, caps)
	require.NoError(t, err)
	require.NoError(t, k.mintKey("root", "ada", ledger.Admin, func(key *ledger.Key) { key.UserID = ada.ID }))
	require.NoError(t, k.mintKey("ada", "nobody's", ledger.Admin))
	require.NoError(t, k.reserveAs("nobody's", 1))
	require.Error(t, k.reserveAs("ada", 1))
	for _, id := range []string{"ada", "nobody's"} {
		_, err = k.ledger.SetUserCaps(t.Context(), k.mustActor(id), ada.ID, 2, quota.Caps{})
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, id)
	}
	caps.MaxLead = time.Hour
	_, err = k.ledger.SetUserCaps(t.Context(), k.mustActor("ada"), ada.ID, 2, caps)
	require.NoError(t, err, "tightening is theirs")
}
