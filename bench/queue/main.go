// Command queue measures the bounded priority queue of core/queue on one thread. See
// bench/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
	"github.com/forewarm/forewarm/core/queue"
)

func main() {
	count := flag.Int("count", 5, "runs of which the figure is the median")
	length := flag.Duration("duration", 2*time.Second, "of one run")
	depth := flag.Int("depth", 10_000, "ids that wait")
	seed := flag.Uint64("seed", 1, "of the order")
	flag.Parse()
	if err := runBenchmark(os.Stdout, max(1, *count), *length, max(1, *depth), *seed); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func runBenchmark(out io.Writer, count int, length time.Duration, depth int, seed uint64) error {
	runtime.GOMAXPROCS(1)
	r := newRing(depth, seed)
	if err := checkBounds(r); err != nil {
		return err
	}
	var series rig.Series
	for range count {
		rate, err := r.measure(length)
		if err != nil {
			return err
		}
		series = append(series, rate)
	}
	series.Print(out, "queue_ops_per_s", "1/s")
	return nil
}

// ring is a queue that is kept full: who is first leaves, and an id that does not wait
// enters a drawn distance behind it, which may be anywhere in the queue.
type ring struct {
	q    *queue.Queue
	ids  []string
	next int
	keys []queue.Key
}

func newRing(depth int, seed uint64) *ring {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &ring{q: queue.New(depth), ids: make([]string, 4*depth), keys: make([]queue.Key, 1<<16)}
	for i := range r.ids {
		r.ids[i] = fmt.Sprintf("job_%016x%016x", rng.Uint64(), i)
	}
	for i := range r.keys {
		r.keys[i] = queue.Key{Minor: rng.Int64N(1 << 40)}
	}
	return r
}

// checkBounds fills the queue, and sees that it refuses one more, and an id that waits.
func checkBounds(r *ring) error {
	for r.q.Push(r.ids[r.next], r.keys[r.next%len(r.keys)]) == nil {
		r.next++
	}
	first, _, _ := r.q.Peek()
	if err := r.q.Push(r.ids[r.next], queue.Key{}); !errors.Is(err, queue.ErrFull) {
		return fmt.Errorf("a full queue answered %v", err) //nolint:errorlint // it may be none
	}
	r.q.Pop()
	second, k, _ := r.q.Peek()
	var duplicate *queue.DuplicateError
	if err := r.q.Push(second, k); !errors.As(err, &duplicate) {
		return fmt.Errorf("an id that waits was answered with %v", err) //nolint:errorlint // it may be none
	}
	return r.q.Push(first, k)
}

// measure exchanges ids for so long and returns the operations in a second: each
// exchange is a Pop and a Push. What waits at the end is then checked.
func (r *ring) measure(length time.Duration) (float64, error) {
	waiting := r.q.Len()
	operations := 0
	free := make([]string, 0, len(r.ids))
	for _, id := range r.ids {
		if !r.q.Update(id, r.keys[len(free)%len(r.keys)]) {
			free = append(free, id)
		}
	}
	begun := time.Now()
	for n := 0; time.Since(begun) < length; n++ {
		for i := range batch {
			id, k, ok := r.q.Pop()
			if !ok {
				return 0, errors.New("the queue ran empty")
			}
			k.Minor += r.keys[(n*batch+i)%len(r.keys)].Minor
			at := (n*batch + i) % len(free)
			if err := r.q.Push(free[at], k); err != nil {
				return 0, fmt.Errorf("entering: %w", err)
			}
			free[at] = id
			operations += 2
		}
	}
	rate := float64(operations) / time.Since(begun).Seconds()
	if r.q.Len() != waiting {
		return 0, fmt.Errorf("%d wait where %d did", r.q.Len(), waiting)
	}
	return rate, r.drain(waiting)
}

const batch = 1000

// drain empties the queue, sees that everybody leaves in order, and fills it again.
func (r *ring) drain(waiting int) error {
	left := make([]string, 0, waiting)
	var last queue.Key
	for id, k, ok := r.q.Pop(); ok; id, k, ok = r.q.Pop() {
		if len(left) > 0 && (k.Major < last.Major || k.Major == last.Major && k.Minor < last.Minor) {
			return fmt.Errorf("%s left with %+v after somebody with %+v", id, k, last)
		}
		left, last = append(left, id), k
	}
	if len(left) != waiting {
		return fmt.Errorf("%d left of %d", len(left), waiting)
	}
	for i, id := range left {
		if err := r.q.Push(id, r.keys[i%len(r.keys)]); err != nil {
			return fmt.Errorf("entering again: %w", err)
		}
	}
	first := left[0]
	if !r.q.Remove(first) || r.q.Remove(first) {
		return errors.New("an id was not taken out once")
	}
	return r.q.Push(first, last)
}
