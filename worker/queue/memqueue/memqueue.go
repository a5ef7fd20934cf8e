// Package memqueue is the in-process queue of an embedded installation and of
// the simulator.
//
// It holds messages in memory and forgets them when the process ends. That is
// enough: the rows in the ledger are the backlog, and the dispatcher sends what
// was lost again. It is unbounded, because the dispatcher already limits how
// much is under way.
package memqueue

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/forewarm/forewarm/worker/queue"
)

var _ queue.Queue = (*Queue)(nil)

// Queue is a first-in, first-out queue.Queue. Make one with New.
type Queue struct {
	log  *slog.Logger
	wake chan struct{} // holds a token whenever a sleeping worker could find work

	mu    sync.Mutex
	items []queue.Message
	held  map[identity]struct{}
}

// identity is what makes two messages the same.
type identity struct {
	taskID         string
	attempt, epoch int
}

func identityOf(m queue.Message) identity { return identity{m.TaskID, m.Attempt, m.Epoch} }

// New returns an empty queue that reports panics of handlers to log; nil means
// slog.Default().
func New(log *slog.Logger) *Queue {
	if log == nil {
		log = slog.Default()
	}
	return &Queue{log: log, wake: make(chan struct{}, 1), held: make(map[identity]struct{})}
}

// Enqueue appends m unless the same task, attempt and epoch already waits. It
// returns an error only if ctx has ended.
func (q *Queue) Enqueue(ctx context.Context, m queue.Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("enqueueing task %s: %w", m.TaskID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	id := identityOf(m)
	if _, waits := q.held[id]; waits {
		return nil
	}
	q.held[id] = struct{}{}
	q.items = append(q.items, m)
	q.signalWorker()
	return nil
}

// Len returns how many messages wait. Messages being handled do not count.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// Step takes the oldest message and runs h on the caller's goroutine, so that a
// single-threaded event loop can drive the queue. It reports whether there was
// a message. A panic of h reaches the caller.
func (q *Queue) Step(ctx context.Context, h queue.Handler) bool {
	m, ok := q.takeMessage()
	if ok {
		h(ctx, m)
	}
	return ok
}

// Run implements queue.Queue. Messages that wait when ctx ends stay queued.
// Handlers get ctx itself.
func (q *Queue) Run(ctx context.Context, concurrency int, h queue.Handler) error {
	if concurrency < 1 {
		return fmt.Errorf("running the in-process queue: concurrency is %d, want 1 or more", concurrency)
	}
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() { q.runWorker(ctx, h) })
	}
	workers.Wait()
	return nil
}

// Forget drops every waiting message, as the end of the process would.
func (q *Queue) Forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = nil
	clear(q.held)
}

// Close forgets every waiting message. It never fails.
func (q *Queue) Close() error {
	q.Forget()
	return nil
}

func (q *Queue) runWorker(ctx context.Context, h queue.Handler) {
	for ctx.Err() == nil {
		m, ok := q.takeMessage()
		if ok {
			q.deliverMessage(ctx, m, h)
			continue
		}
		select {
		case <-ctx.Done():
		case <-q.wake:
		}
	}
}

// deliverMessage keeps a panic from ending the process: the row's lease runs out and
// the task is tried again.
func (q *Queue) deliverMessage(ctx context.Context, m queue.Message, h queue.Handler) {
	defer func() {
		if r := recover(); r != nil {
			q.log.ErrorContext(ctx, "task handler panicked",
				"task_id", m.TaskID, "kind", m.Kind, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
	}()
	h(ctx, m)
}

func (q *Queue) takeMessage() (queue.Message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return queue.Message{}, false
	}
	m := q.items[0]
	q.items[0] = queue.Message{} // lets go of its strings before the array is replaced
	q.items = q.items[1:]
	delete(q.held, identityOf(m))
	if len(q.items) > 0 {
		q.signalWorker()
	}
	return m, true
}

// signalWorker wakes one sleeping worker, which wakes the next while work remains.
func (q *Queue) signalWorker() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
