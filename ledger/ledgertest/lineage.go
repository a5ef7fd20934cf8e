package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// whatAKeyMadeIsFound: the offspring of a key is the key itself, the keys made with
// it or with those, and the schedules of all of them; that of a person is the
// offspring of all of their keys.
func whatAKeyMadeIsFound(w *world) {
	saveGround(w)
	made := func(id, parent, user string, role ledger.Role) ledger.Key {
		k := newKey(id, "org_1")
		k.ParentID, k.UserID, k.Role, k.RevokedAt = parent, user, role, day
		return k
	}
	revoked := made("key_z", "", "", ledger.Operator)
	root := made("key_r", "", "", ledger.Operator)
	root.RevokedAt = time.Time{}
	s := newSchedule("sch_t", "org_1", "pol_1")
	s.MadeBy = "key_c"
	w.mustSave(ledger.Change{
		Keys: []ledger.Key{
			root, revoked, made("key_b", "key_r", "usr_7", ledger.Admin), made("key_c", "key_b", "", ledger.Member),
			made("key_d", "", "", ledger.Admin),
		},
		Schedules: []ledger.Schedule{s},
	})
	for root, want := range map[ledger.KeyRoot][]string{
		{KeyID: "key_r"}:   {"key_b", "key_c", "key_r", "sch_t"},
		{KeyID: "key_b"}:   {"key_b", "key_c", "sch_t"},
		{KeyID: "key_d"}:   {"key_d"},
		{UserID: "usr_7"}:  {"key_b", "key_c", "sch_t"},
		{UserID: "nobody"}: {},
		{}:                 {},
	} {
		got := readValue(w, func(r ledger.Reader) ([]string, error) { return r.Offspring(root) })
		require.Equal(w, want, got, "%+v", root)
	}
	operators := readValue(w, func(r ledger.Reader) ([]ledger.Key, error) { return r.OperatorKeys() })
	require.Len(w, operators, 1, "one is revoked")
	require.Equal(w, "key_r", operators[0].ID)
}
