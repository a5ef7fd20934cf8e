package asynqueue

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/hibiken/asynq"

	"github.com/forewarm/forewarm/worker/queue"
)

// delivery is the asynq handler of one Run.
type delivery struct {
	end     context.Context // ends when Run has to end
	handle  queue.Handler
	log     *slog.Logger
	slots   chan struct{}
	running sync.WaitGroup
}

func newDelivery(end context.Context, concurrency int, h queue.Handler, log *slog.Logger) *delivery {
	return &delivery{end: end, handle: h, log: log, slots: make(chan struct{}, concurrency)}
}

// ProcessTask implements asynq.Handler. It always returns nil: an error would
// keep the message in asynq's archive, where it is no use to anyone.
func (d *delivery) ProcessTask(ctx context.Context, task *asynq.Task) error {
	d.running.Add(1)
	defer d.running.Done()
	if d.end.Err() != nil {
		return nil // lost, which the port allows: the dispatcher sends it again
	}
	m, err := decodeMessage(task.Payload())
	if err != nil {
		d.log.WarnContext(ctx, "dropped a message that is not ours",
			"type", task.Type(), "bytes", len(task.Payload()), "error", err)
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.end, cancel)()
	d.deliverMessage(ctx, m)
	return nil
}

// deliverMessage runs the handler in a slot of its own. asynq counts workers, but stops
// counting one whose lease or timeout ran out although its handler still runs.
func (d *delivery) deliverMessage(ctx context.Context, m queue.Message) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return
	}
	defer func() {
		if r := recover(); r != nil {
			d.log.ErrorContext(ctx, "task handler panicked",
				"task_id", m.TaskID, "kind", m.Kind, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
	}()
	d.handle(ctx, m)
}
