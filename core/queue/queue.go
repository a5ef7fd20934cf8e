// Package queue decides who may wait and who waits in front: a bounded priority queue of
// unique ids, and the rate at which somebody may enter it.
//
// The queue is a heap of four children a node with an index from ids to places, so that
// whatever waits can be found, moved and taken out in logarithmic time. Four children
// instead of two halve its depth, and lie beside each other in memory.
package queue

import (
	"errors"
	"fmt"
)

// Key is a place in the order: the smaller Major first, then the smaller Minor, then the
// smaller id, so that the order never depends on how the queue was filled.
type Key struct {
	Major, Minor int64
}

// ErrFull says that as many wait as may.
var ErrFull = errors.New("the queue is full")

// DuplicateError says that the id waits already.
type DuplicateError struct{ ID string }

// Error names the id.
func (e *DuplicateError) Error() string { return fmt.Sprintf("%q is in the queue already", e.ID) }

// slot is what the queue knows of one id.
type slot struct {
	id string
	at int32 // its index in the heap
}

// entry is an element of the heap: the key is beside the next, not behind a pointer.
type entry struct {
	Key
	slot int32
}

// Queue is a bounded priority queue of unique ids. It is made by New.
type Queue struct {
	limit int
	heap  []entry
	slots []slot
	spare []int32 // slots that nobody uses
	index map[string]int32
}

// New returns an empty queue of at most limit ids; 0 or less: none at all.
func New(limit int) *Queue {
	return &Queue{limit: limit, index: make(map[string]int32, min(max(limit, 0), preallocated))}
}

// preallocated bounds the memory that an empty queue of a large limit takes.
const preallocated = 1 << 14

// Len returns how many wait.
func (q *Queue) Len() int { return len(q.heap) }

// Push adds an id. It returns ErrFull, or a *DuplicateError, and then changes nothing.
func (q *Queue) Push(id string, k Key) error {
	if len(q.heap) >= q.limit {
		return ErrFull
	}
	if _, waits := q.index[id]; waits {
		return &DuplicateError{ID: id}
	}
	s := q.newSlot(id)
	q.index[id] = s
	q.heap = append(q.heap, entry{})
	q.rise(len(q.heap)-1, entry{k, s})
	return nil
}

// Peek returns who is first; false when nobody waits.
func (q *Queue) Peek() (id string, k Key, ok bool) {
	if len(q.heap) == 0 {
		return "", Key{}, false
	}
	return q.slots[q.heap[0].slot].id, q.heap[0].Key, true
}

// Pop takes out who is first; false when nobody waits.
func (q *Queue) Pop() (id string, k Key, ok bool) {
	if len(q.heap) == 0 {
		return "", Key{}, false
	}
	first := q.heap[0]
	id = q.slots[first.slot].id
	q.takeOut(0)
	return id, first.Key, true
}

// Remove takes out an id. It returns false when it does not wait.
func (q *Queue) Remove(id string) bool {
	s, waits := q.index[id]
	if waits {
		q.takeOut(int(q.slots[s].at))
	}
	return waits
}

// Update gives an id another place. It returns false when it does not wait.
func (q *Queue) Update(id string, k Key) bool {
	s, waits := q.index[id]
	if waits {
		q.moveFrom(int(q.slots[s].at), entry{k, s})
	}
	return waits
}

func (q *Queue) newSlot(id string) int32 {
	if n := len(q.spare); n > 0 {
		s := q.spare[n-1]
		q.spare = q.spare[:n-1]
		q.slots[s].id = id
		return s
	}
	q.slots = append(q.slots, slot{id: id})
	return int32(len(q.slots) - 1)
}

// takeOut removes the element at index i of the heap.
func (q *Queue) takeOut(i int) {
	s := q.heap[i].slot
	delete(q.index, q.slots[s].id)
	q.slots[s].id = ""
	q.spare = append(q.spare, s)
	last := q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	if i < len(q.heap) {
		q.moveFrom(i, last)
	}
}

// moveFrom puts e where it belongs, starting from the free place i.
func (q *Queue) moveFrom(i int, e entry) {
	if i > 0 && q.less(e, q.heap[(i-1)/children]) {
		q.rise(i, e)
		return
	}
	q.descend(i, e)
}

const children = 4

func (q *Queue) rise(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / children
		if !q.less(e, q.heap[parent]) {
			break
		}
		q.put(i, q.heap[parent])
		i = parent
	}
	q.put(i, e)
}

func (q *Queue) descend(i int, e entry) {
	for {
		first := i*children + 1
		if first >= len(q.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(q.heap)); c++ {
			if q.less(q.heap[c], q.heap[least]) {
				least = c
			}
		}
		if !q.less(q.heap[least], e) {
			break
		}
		q.put(i, q.heap[least])
		i = least
	}
	q.put(i, e)
}

func (q *Queue) put(i int, e entry) {
	q.heap[i] = e
	q.slots[e.slot].at = int32(i)
}

func (q *Queue) less(a, b entry) bool {
	if a.Major != b.Major {
		return a.Major < b.Major
	}
	if a.Minor != b.Minor {
		return a.Minor < b.Minor
	}
	return q.slots[a.slot].id < q.slots[b.slot].id
}
