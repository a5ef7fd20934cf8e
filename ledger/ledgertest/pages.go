package ledgertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

func listsComeInPages(w *world) {
	var orgs []ledger.Organization
	for i := range 510 {
		orgs = append(orgs, newOrganization(fmt.Sprintf("org_%04d", i)))
	}
	w.mustSave(ledger.Change{Organizations: orgs})
	page := func(p ledger.Page) []ledger.Organization {
		return readValue(w, func(r ledger.Reader) ([]ledger.Organization, error) {
			return r.Organizations(everything, p)
		})
	}
	require.Len(w, page(ledger.Page{}), 50)
	require.Len(w, page(ledger.Page{Limit: 10_000}), 500)
	seen, after := 0, ""
	for {
		list := page(ledger.Page{After: after, Limit: 100})
		if len(list) == 0 {
			break
		}
		for _, o := range list {
			require.Equal(w, fmt.Sprintf("org_%04d", seen), o.ID)
			seen++
		}
		after = list[len(list)-1].ID
	}
	require.Equal(w, 510, seen)
	newest := page(ledger.Page{Limit: 2, Newest: true})
	require.Equal(w, []string{"org_0509", "org_0508"},
		namesOf(newest, func(o ledger.Organization) string { return o.ID }))
	require.Equal(w, "org_0507", page(ledger.Page{Limit: 1, Newest: true, After: "org_0508"})[0].ID)
	newestFirst(w)
}

// newestFirst: also where ids are not in the order of time.
func newestFirst(w *world) {
	w.Helper()
	var keys []ledger.Key
	for i, id := range []string{"key_b", "key_c", "key_a", "key_d"} {
		k := newKey(id, "org_0001")
		k.CreatedAt = day.Add(time.Duration(i/2) * time.Hour) // two at a time
		keys = append(keys, k)
	}
	w.mustSave(ledger.Change{Keys: keys})
	var got []string
	for after := ""; ; {
		page := readValue(w, func(r ledger.Reader) ([]ledger.Key, error) {
			return r.Keys(everything, ledger.KeyFilter{}, ledger.Page{Limit: 1, Newest: true, After: after})
		})
		if len(page) == 0 {
			break
		}
		after = page[0].ID
		got = append(got, after)
	}
	require.Equal(w, []string{"key_d", "key_a", "key_c", "key_b"}, got)
}

// endedKeysAreLeftOut unless they are asked for: a key ends when it is revoked, at the instant at which it expires, and
// with its person or a key that it rests on.
func endedKeysAreLeftOut(w *world) {
	saveGround(w)
	made := func(id string, expires, revoked time.Time) ledger.Key {
		k := newKey(id, "org_1")
		k.UserID, k.ExpiresAt, k.RevokedAt = "", expires, revoked
		return k
	}
	restsOn := func(id, parent string) ledger.Key {
		k := made(id, time.Time{}, time.Time{})
		k.ParentID = parent
		return k
	}
	of := func(id, user string) ledger.Key {
		k := made(id, time.Time{}, time.Time{})
		k.UserID = user
		return k
	}
	inactive := newUser("usr_left", "org_1")
	inactive.Active = false
	w.mustSave(ledger.Change{Users: []ledger.User{newUser("usr_here", "org_1"), inactive}, Keys: []ledger.Key{
		restsOn("key_child", "key_lasts"), restsOn("key_lost", "key_orphan"), restsOn("key_orphan", "key_revoked"),
		of("key_hers", "usr_here"), of("key_his", "usr_left"), restsOn("key_his_too", "key_his"),
		made("key_lasts", time.Time{}, time.Time{}), made("key_later", day.Add(time.Microsecond), time.Time{}),
		made("key_now", day, time.Time{}), made("key_revoked", time.Time{}, day.Add(-time.Hour)),
	}})
	list := func(f ledger.KeyFilter) []string {
		return namesOf(readValue(w, func(r ledger.Reader) ([]ledger.Key, error) {
			return r.Keys(everything, f, ledger.Page{})
		}), func(k ledger.Key) string { return k.ID })
	}
	require.Equal(w, []string{"key_child", "key_hers", "key_lasts", "key_later"}, list(ledger.KeyFilter{ValidAt: day}))
	require.Subset(w, list(ledger.KeyFilter{}), []string{"key_lasts", "key_later", "key_lost", "key_now", "key_orphan",
		"key_revoked"})
}
