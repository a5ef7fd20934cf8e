package queue_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/queue"
)

func TestOrderIsByMajorThenMinorThenID(t *testing.T) {
	t.Parallel()
	q := queue.New(10)
	for id, k := range map[string]queue.Key{
		"e": {Major: 2, Minor: 0}, "d": {Major: 1, Minor: 5}, "c": {Major: 1, Minor: 5}, "b": {Major: 1, Minor: -9},
		"a": {Major: 3, Minor: -99},
	} {
		require.NoError(t, q.Push(id, k))
	}
	var got string
	for id, _, ok := q.Pop(); ok; id, _, ok = q.Pop() {
		got += id
	}
	require.Equal(t, "bcdea", got)
}

func TestAFullQueueAndADuplicateAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	q := queue.New(2)
	require.NoError(t, q.Push("a", queue.Key{Major: 1}))
	var duplicate *queue.DuplicateError
	require.ErrorAs(t, q.Push("a", queue.Key{}), &duplicate)
	require.Equal(t, "a", duplicate.ID)
	require.NoError(t, q.Push("b", queue.Key{Major: 2}))
	require.ErrorIs(t, q.Push("c", queue.Key{}), queue.ErrFull)
	require.Equal(t, 2, q.Len())
	id, k, _ := q.Peek()
	require.Equal(t, "a", id)
	require.Equal(t, queue.Key{Major: 1}, k)
	require.ErrorIs(t, queue.New(0).Push("a", queue.Key{}), queue.ErrFull)
	require.ErrorIs(t, queue.New(-1).Push("a", queue.Key{}), queue.ErrFull)
}

// Against a sorted list: whatever is pushed, moved and removed, each answer is what the
// list gives.
func TestAQueueIsASortedList(t *testing.T) {
	t.Parallel()
	type element struct {
		id string
		k  queue.Key
	}
	compare := func(a, b element) int {
		return cmp.Or(cmp.Compare(a.k.Major, b.k.Major), cmp.Compare(a.k.Minor, b.k.Minor), cmp.Compare(a.id, b.id))
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 30).Draw(t, "limit")
		q, list := queue.New(limit), []element{}
		find := func(id string) int {
			return slices.IndexFunc(list, func(e element) bool { return e.id == id })
		}
		for range rapid.IntRange(0, 200).Draw(t, "operations") {
			id := fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "id"))
			k := queue.Key{Major: rapid.Int64Range(0, 3).Draw(t, "major"), Minor: rapid.Int64Range(0, 3).Draw(t, "minor")}
			at := find(id)
			switch rapid.IntRange(0, 4).Draw(t, "operation") {
			case 0, 1:
				err := q.Push(id, k)
				require.Equal(t, at < 0 && len(list) < limit, err == nil)
				if err == nil {
					list = append(list, element{id, k})
				}
			case 2:
				require.Equal(t, at >= 0, q.Remove(id))
				if at >= 0 {
					list = slices.Delete(list, at, at+1)
				}
			case 3:
				require.Equal(t, at >= 0, q.Update(id, k))
				if at >= 0 {
					list[at].k = k
				}
			default:
				got, gotKey, ok := q.Pop()
				require.Equal(t, len(list) > 0, ok)
				if ok {
					require.Equal(t, list[0], element{got, gotKey})
					list = list[1:]
				}
			}
			slices.SortFunc(list, compare)
			require.Equal(t, len(list), q.Len())
			if id, k, ok := q.Peek(); ok {
				require.Equal(t, list[0], element{id, k})
			}
		}
	})
}
