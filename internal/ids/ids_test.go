package ids_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/ids"
)

func TestNoIdentifierRepeats(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]ids.Source{"uuid": ids.UUID{}, "sequence": &ids.Sequence{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const makers, each = 8, 2000
			made := make([][]string, makers)
			var wg sync.WaitGroup
			for i := range made {
				wg.Go(func() {
					for range each {
						made[i] = append(made[i], source.New(ids.Node))
					}
				})
			}
			wg.Wait()
			all := slices.Concat(made...)
			for _, id := range all {
				require.NoError(t, ids.Check(ids.Node, id))
			}
			slices.Sort(all)
			require.Len(t, slices.Compact(all), makers*each)
		})
	}
}

func TestIdentifiersSortByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var made []string
		for range 500 {
			made = append(made, ids.UUID{}.New(ids.Reservation), ids.UUID{}.New(ids.Reservation))
			time.Sleep(time.Millisecond) // of the bubble's own time
		}
		require.True(t, slices.IsSorted(made))
	})
}

func TestASequenceIsPredictable(t *testing.T) {
	t.Parallel()
	var a, b ids.Sequence
	var made []string
	for range 300 {
		made = append(made, a.New(ids.Task))
		require.Equal(t, made[len(made)-1], b.New(ids.Task))
	}
	require.Equal(t, "tsk_00000000000000000000000004", made[0])
	require.True(t, slices.IsSorted(made))
}

func TestDerivedIsStable(t *testing.T) {
	t.Parallel()
	id := ids.Derived(ids.Reservation, "sch_1", "2026-03-02")
	require.Equal(t, id, ids.Derived(ids.Reservation, "sch_1", "2026-03-02"))
	require.NoError(t, ids.Check(ids.Reservation, id))
	require.Equal(t, "rsv_rfm330nhkmfx0nhsmm47nen420", id, "stored ids depend on it")
	for _, other := range []string{
		ids.Derived(ids.Reservation, "sch_1", "2026-03-03"),
		ids.Derived(ids.Reservation, "sch_12026-03-02"),
		ids.Derived(ids.Reservation, "2026-03-02", "sch_1"),
		ids.Derived(ids.Reservation),
	} {
		require.NotEqual(t, id, other)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	good := ids.Derived(ids.Pool, "a")
	require.NoError(t, ids.Check(ids.Pool, good))
	for name, bad := range map[string]string{
		"nothing":              "",
		"only the kind":        "pol_",
		"another kind":         ids.Derived(ids.Node, "a"),
		"no underscore":        strings.Replace(good, "_", "", 1),
		"too short":            good[:len(good)-1],
		"too long":             good + "0",
		"capitals":             "pol_" + strings.ToUpper(good[4:]),
		"a letter not in use":  good[:len(good)-2] + "u" + good[len(good)-1:],
		"line breaks":          good[:len(good)-2] + "\n\n",
		"a space before":       " " + good,
		"another tail":         good[:len(good)-1] + "z",
		"someone else's words": "pol_' OR 1=1 --",
	} {
		require.Error(t, ids.Check(ids.Pool, bad), name)
	}
}

func TestCheckAllowsOneSpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := ids.Derived(ids.Key, rapid.String().Draw(t, "part"))
		require.NoError(t, ids.Check(ids.Key, id))
		at := rapid.IntRange(len(id)-2, len(id)-1).Draw(t, "at")
		letter := rapid.SampledFrom([]byte("\n\r 0123456789abcdefghjkmnpqrstvwxyz")).Draw(t, "letter")
		changed := id[:at] + string(letter) + id[at+1:]
		if at == len(id)-1 && changed != id && letter > ' ' {
			// Two of the last letter's five bits are spare: most letters are refused.
			if ids.Check(ids.Key, changed) == nil {
				require.Contains(t, "048cgmrw", string(letter))
			}
			return
		}
		require.Equal(t, letter > ' ', ids.Check(ids.Key, changed) == nil)
	})
}

func TestWhatResemblesAnIdentifier(t *testing.T) {
	t.Parallel()
	for _, text := range []string{ids.UUID{}.New(ids.Key), "rsv_01KE4J5M3ZF8K9V7Q2X6T0B1CD", "Ab3dE5fG7h", "0000A00000",
		"ABCDEFGHIJ"} {
		require.True(t, ids.Resembles(text), text)
	}
	for _, text := range []string{"", "production", "Production", "laptop2026", "my-LaptopX", "Ab3dE5fG7hI",
		"Ab3dE5fG7", "rsv_1", "xyz_01ke4j5m3zf8k9v7q2x6t0b1cd"} {
		require.False(t, ids.Resembles(text), text)
	}
}
