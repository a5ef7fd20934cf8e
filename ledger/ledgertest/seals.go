package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// sealsComeBack writes seals and reads them, and the journal whole.
func sealsComeBack(w *world) {
	w.readSnapshot(func(r ledger.Reader) error {
		none, err := r.LastSeal()
		require.Zero(w, none)
		return err
	})
	told := newEvent("org_1", "nod_1")
	told.Decision = []byte(`{"kind":"test"}`)
	w.mustSave(ledger.Change{Events: []ledger.Event{told, newEvent("", "pol_1")}})
	events := awaitEvents(w, 2)
	first := ledger.Seal{
		Number: 1, Format: 1, KeyID: "abcd", First: events[0].Seq, Last: events[0].Seq, Count: 1,
		SealedAt: w.now().Truncate(time.Microsecond), Tags: []byte{0, 255, 1}, MAC: []byte{3},
	}
	second := first
	second.Number, second.First, second.Last, second.MAC = 2, events[1].Seq, events[1].Seq, []byte{4}
	w.mustSave(ledger.Change{Seals: []ledger.Seal{first}})
	w.mustSave(ledger.Change{Seals: []ledger.Seal{second}})
	require.ErrorIs(w, w.save(ledger.Change{Seals: []ledger.Seal{second}}), ledger.ErrTaken)
	w.readSnapshot(func(r ledger.Reader) error {
		last, err := r.LastSeal()
		require.NoError(w, err)
		require.Equal(w, second, last)
		all, err := r.Seals(0, 10)
		require.NoError(w, err)
		require.Equal(w, []ledger.Seal{first, second}, all)
		rest, err := r.Seals(1, 10)
		require.Equal(w, []ledger.Seal{second}, rest)
		return err
	})
	told.Seq = events[0].Seq
	for _, last := range []int64{0, events[0].Seq} {
		whole := readValue(w, func(r ledger.Reader) ([]ledger.Event, error) { return r.Journal(0, last, 1) })
		require.Equal(w, []ledger.Event{told}, whole, "with its decision")
	}
}

// aWriteIsChecked checks that the store takes writes while nobody is in the way.
func aWriteIsChecked(w *world) {
	for range 3 {
		require.NoError(w, w.store.CheckWrites(w.Context()))
	}
	held, err := w.store.Held(w.Context(), ledger.Rows{Organizations: []string{"org_1"}, Pools: []string{"pol_1"}})
	require.NoError(w, err)
	require.Empty(w, held.Organizations, "nobody holds what is not there, or free")
}

// theFirstPepperStays: the check of the pepper is written once.
func theFirstPepperStays(w *world) {
	check := func(r ledger.Reader) (string, error) { return r.PepperCheck() }
	require.Empty(w, readValue(w, check))
	w.mustSave(ledger.Change{PepperCheck: "aa"})
	w.mustSave(ledger.Change{PepperCheck: "bb"})
	require.Equal(w, "aa", readValue(w, check))
}
