package verbs_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// Whatever is done with keys, in whatever order: an operator's key that lasts is
// left; a key works as long as it and all that it rests on do, and no stronger;
// and what rests on a capped key holds no more, together, than the cap.
func TestKeysKeepTheirBoundsInAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		k := newKeyring(t)
		people := []ledger.User{k.addUser("a@example.org", ledger.Admin), k.addUser("b@example.org", ledger.Admin)}
		for step := range rapid.IntRange(10, 40).Draw(rt, "steps") {
			k.takeStep(rt, step, people)
			k.checkBounds(rt, people)
		}
	})
}

func (k *keyring) takeStep(rt *rapid.T, n int, people []ledger.User) {
	actor, ok := k.actorOf(rapid.SampledFrom(k.made).Draw(rt, "actor"))
	if !ok {
		return
	}
	target := rapid.SampledFrom(k.made).Draw(rt, "target")
	switch rapid.IntRange(0, 15).Draw(rt, "what") {
	case 0, 1, 2, 3:
		roles := []ledger.Role{ledger.Viewer, ledger.Member, ledger.Admin, ledger.Operator}
		_ = k.mintKey(actor.KeyID, "key-"+strconv.Itoa(n), rapid.SampledFrom(roles).Draw(rt, "role"),
			func(key *ledger.Key) {
				if rapid.Bool().Draw(rt, "capped") {
					withGPUCap(rapid.IntRange(1, 2).Draw(rt, "gpus"))(key)
				}
				if hours := rapid.IntRange(0, 2).Draw(rt, "life"); hours > 0 {
					key.ExpiresAt = k.clock.Now().Add(time.Duration(hours) * time.Hour)
				}
				if rapid.IntRange(0, 2).Draw(rt, "person") == 0 {
					key.UserID = rapid.SampledFrom(people).Draw(rt, "who").ID
				}
			})
	case 4:
		_, err := k.ledger.RevokeKey(k.Context(), actor, target)
		if !actor.AtLeast(k.readKey(target).Role) {
			require.Error(rt, err)
		}
	case 5:
		if _, err := k.ledger.AdoptKey(k.Context(), actor, target); err == nil {
			require.Equal(rt, ledger.Operator, actor.Role)
			k.maker[target] = ""
		}
	case 6:
		p := &people[rapid.IntRange(0, 1).Draw(rt, "which")]
		role := rapid.SampledFrom([]ledger.Role{ledger.Viewer, ledger.Admin}).Draw(rt, "as")
		if u, err := k.ledger.UpdateUser(k.Context(), actor, p.ID, p.Version, role,
			rapid.IntRange(0, 2).Draw(rt, "active") > 0); err == nil {
			*p = u
		}
	case 7:
		k.clock.Advance(20 * time.Minute)
	default:
		if actor.AtLeast(ledger.Member) {
			window := k.windowAfter(0, time.Hour)
			window.Start = monday.Add(30 * time.Hour)
			window.End = window.Start.Add(time.Hour)
			_, _ = k.ledger.Reserve(k.Context(), actor,
				ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window, Name: "x"})
		}
	}
}

func (k *keyring) checkBounds(rt *rapid.T, people []ledger.User) {
	now, lasting, all := k.clock.Now(), 0, map[string]ledger.Key{}
	for _, id := range k.made {
		all[id] = k.readKey(id)
	}
	held := map[string]int{}
	for _, r := range k.liveReservations(func(reservation.Reservation) bool { return true }) {
		for id := r.MadeBy; id != ""; id = k.maker[id] {
			held[id] += r.Shape.GPUs()
		}
	}
	for _, id := range k.made {
		works, expires, role := true, false, ledger.Operator
		for at := id; at != ""; at = k.maker[at] {
			key := all[at]
			works = works && key.RevokedAt.IsZero() && (key.ExpiresAt.IsZero() || now.Before(key.ExpiresAt))
			expires = expires || !key.ExpiresAt.IsZero()
			role = lesserRole(role, key.Role)
			if i := slices.IndexFunc(people, func(u ledger.User) bool { return u.ID == key.UserID }); i >= 0 {
				works, role = works && people[i].Active, lesserRole(role, people[i].Role)
			}
		}
		actor, ok := k.actorOf(id)
		require.Equal(rt, works, ok, id)
		if works {
			require.Equal(rt, role, actor.Role, id)
		}
		if works && !expires && role == ledger.Operator {
			lasting++
		}
		if caps := all[id].Caps; caps != (quota.Caps{}) {
			require.LessOrEqual(rt, held[id], caps.MaxGPUs, "%s and what it made", id)
		}
	}
	require.Positive(rt, lasting, "an operator's key that lasts")
}

func lesserRole(a, b ledger.Role) ledger.Role {
	roles := []ledger.Role{ledger.Viewer, ledger.Member, ledger.Admin, ledger.Operator}
	if slices.Index(roles, b) < slices.Index(roles, a) {
		return b
	}
	return a
}
