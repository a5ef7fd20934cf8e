// Package queue is the port between the dispatcher and whatever carries work to
// a worker. A queue only rings the bell: every task is a row in the ledger, and
// a message is nothing but that row's id and attempt. A queue may therefore lose
// everything, deliver twice, deliver late and deliver out of order; it must not
// invent messages.
package queue

import "context"

// Message points at one attempt of one task row.
type Message struct {
	TaskID  string
	Kind    string
	Attempt int
	// Epoch counts groups of dispatches of the same attempt. A queue that
	// refuses a message it has seen before must treat another epoch as new:
	// otherwise a worker that was killed after it took the message and before it
	// claimed the row would block that row for as long as the queue remembers.
	Epoch int
}

// Handler does the work a message points at. It never returns an error: what
// went wrong, and when to try again, is written in the task's row. It may run
// concurrently with itself for the same message. It should stop soon after the
// context ends.
type Handler func(ctx context.Context, m Message)

// Queue carries messages. Implementations are safe for concurrent use.
type Queue interface {
	// Enqueue hands over a message for one delivery. A message that the queue
	// already holds is success. An error means that it may or may not have been
	// taken; the dispatcher will send it again.
	Enqueue(ctx context.Context, m Message) error
	// Run delivers messages to h, up to concurrency at once, until ctx ends;
	// then it waits for running handlers and returns nil. It returns an error
	// only if it cannot serve at all.
	Run(ctx context.Context, concurrency int, h Handler) error
	// Close frees the queue's connections. It is called after Run returned.
	Close() error
}
