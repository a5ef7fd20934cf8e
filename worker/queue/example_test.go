package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
	"github.com/forewarm/forewarm/worker/queue/standby"
)

// A message is the id and the attempt of a task row, nothing else: the handler claims
// the row, and the claim finds out whether the message came twice or too late. Every
// adapter runs the suite in queuetest.
func ExampleQueue() {
	var bell queue.Queue = memqueue.New(slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())

	// A message that the queue still holds is taken as sent. Under another epoch the
	// same attempt is sent anew, for a worker that took it and died before its claim.
	boot := queue.Message{TaskID: "tsk_1", Kind: "node.create", Attempt: 1}
	late := boot
	late.Epoch++
	for _, m := range []queue.Message{boot, boot, late} {
		if err := bell.Enqueue(ctx, m); err != nil {
			fmt.Println(err)
		}
	}

	delivered := 0
	err := bell.Run(ctx, 1, func(_ context.Context, m queue.Message) {
		fmt.Println("claim", m.TaskID, "attempt", m.Attempt, "epoch", m.Epoch)
		if delivered++; delivered == 2 {
			stop()
		}
	})
	fmt.Println(err, bell.Close())
	// Output:
	// claim tsk_1 attempt 1 epoch 0
	// claim tsk_1 attempt 1 epoch 1
	// <nil> <nil>
}

// Package memqueue can be driven one message at a time, on the caller's goroutine:
// that is how the simulator works off tasks in virtual time.
func ExampleQueue_step() {
	bell := memqueue.New(slog.New(slog.DiscardHandler))
	ctx := context.Background()
	for _, id := range []string{"tsk_1", "tsk_2"} {
		if err := bell.Enqueue(ctx, queue.Message{TaskID: id, Kind: "pool.plan"}); err != nil {
			fmt.Println(err)
		}
	}
	for bell.Step(ctx, func(_ context.Context, m queue.Message) { fmt.Println(m.Kind, m.TaskID) }) {
		fmt.Println(bell.Len(), "left")
	}
	// Output:
	// pool.plan tsk_1
	// 1 left
	// pool.plan tsk_2
	// 0 left
}

// Package standby stands before a queue that can be away, such as Redis. What that
// queue does not take is delivered in this process.
func ExampleQueue_standby() {
	bell := standby.New(unreachable{}, standby.Config{Name: "Redis", Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.Background())
	err := bell.Enqueue(ctx, queue.Message{TaskID: "tsk_1", Kind: "pool.plan"})
	fmt.Println("taken:", err)

	var once sync.Once
	err = bell.Run(ctx, 1, func(_ context.Context, m queue.Message) {
		once.Do(func() { fmt.Println("claim", m.TaskID) })
		stop()
	})
	fmt.Println(err, bell.Close())
	// Output:
	// taken: <nil>
	// claim tsk_1
	// <nil> <nil>
}

// unreachable is a queue whose server does not answer.
type unreachable struct{}

var errRefused = errors.New("connection refused")

func (unreachable) Ping(context.Context) error                    { return errRefused }
func (unreachable) Enqueue(context.Context, queue.Message) error  { return errRefused }
func (unreachable) Run(context.Context, int, queue.Handler) error { return errRefused }
func (unreachable) Close() error                                  { return nil }
