package queuetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/worker/queue"
)

func message(id string) queue.Message { return queue.Message{TaskID: id, Kind: "node.create"} }

func deliversUnchanged(f *fixture) {
	sent := []queue.Message{
		{TaskID: "tsk_1", Kind: "node.create"},
		{TaskID: "tsk_1", Kind: "node.create", Attempt: 1},
		{TaskID: "tsk_1", Kind: "node.create", Attempt: 1, Epoch: 2},
		{TaskID: "tsk_2", Kind: "node.delete", Attempt: 1 << 30, Epoch: 1 << 30},
		{TaskID: `odd "id" {ü} 50%`, Kind: "ünïcode <kind>\n"},
	}
	f.enqueue(sent...)
	got := make(chan queue.Message)
	f.start(2, into(got))
	require.ElementsMatch(f, sent, collect(f, got, len(sent)))
}

func repeatIsHarmless(f *fixture) {
	m, last := message("tsk_repeat"), message("tsk_last")
	f.enqueue(m, m, m, last)
	var times atomic.Int64
	first, end := make(chan struct{}), make(chan struct{})
	var once, onceEnd sync.Once
	r := f.start(1, func(_ context.Context, got queue.Message) {
		if got == last {
			onceEnd.Do(func() { close(end) })
			return
		}
		times.Add(1)
		once.Do(func() { close(first) })
	})
	receive(f, first, "the repeated message")
	receive(f, end, "the message after it")
	r.stop()
	require.LessOrEqual(f, times.Load(), int64(2))
}

// anotherEpochIsNew stages a worker that dies between taking a message and
// claiming its row: the dispatcher's way out is the next epoch.
func anotherEpochIsNew(f *fixture) {
	m := message("tsk_lost")
	f.enqueue(m)
	taken := make(chan queue.Message, 1)
	r := f.start(1, func(ctx context.Context, m queue.Message) {
		taken <- m
		<-ctx.Done()
	})
	receive(f, taken, "the message that gets lost")
	r.stop()

	m.Epoch++
	f.enqueue(m)
	got := make(chan queue.Message)
	f.start(1, into(got))
	for receive(f, got, "the next epoch") != m {
	}
}

func concurrencyIsLimited(f *fixture) {
	const limit, total = 3, 9
	for i := range total {
		f.enqueue(message(fmt.Sprintf("tsk_%d", i)))
	}
	started, release, ended := make(chan struct{}, total), make(chan struct{}), make(chan struct{}, total)
	f.start(limit, func(context.Context, queue.Message) {
		started <- struct{}{}
		<-release
		ended <- struct{}{}
	})
	open := sync.OnceFunc(func() { close(release) })
	f.Cleanup(open)
	for range limit {
		receive(f, started, "handlers side by side")
	}
	never(f, started, "more handlers ran than the concurrency allows")
	open()
	for range total {
		receive(f, ended, "the handlers' end")
	}
}

func panicIsContained(f *fixture) {
	bad, good := message("tsk_bad"), message("tsk_good")
	panicking, got := make(chan struct{}, 1), make(chan queue.Message)
	deliver := into(got)
	r := f.start(1, func(ctx context.Context, m queue.Message) {
		if m == bad {
			panicking <- struct{}{}
			panic("a handler's bug")
		}
		deliver(ctx, m)
	})
	f.enqueue(bad)
	receive(f, panicking, "the panic")
	f.enqueue(good)
	require.Equal(f, good, receive(f, got, "the message after the panic"))
	select {
	case <-r.done:
		f.Fatal("Run ended because a handler panicked")
	default:
	}
}

func endReachesHandlers(f *fixture) {
	f.enqueue(message("tsk_long"))
	taken, ended := make(chan struct{}, 1), make(chan error, 1)
	r := f.start(1, func(ctx context.Context, _ queue.Message) {
		taken <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
	})
	receive(f, taken, "the message")
	r.cancel()
	require.ErrorIs(f, receive(f, ended, "the handler's context to end"), context.Canceled)
	receive(f, r.done, "Run to return")
}

func runWaits(f *fixture) {
	f.enqueue(message("tsk_slow"))
	taken, release := make(chan struct{}, 1), make(chan struct{})
	var finished atomic.Bool
	r := f.start(2, func(context.Context, queue.Message) {
		taken <- struct{}{}
		<-release
		finished.Store(true)
	})
	receive(f, taken, "the message")
	r.cancel()
	never(f, r.done, "Run returned while a handler was running")
	close(release)
	receive(f, r.done, "Run to return")
	require.True(f, finished.Load())
	require.NoError(f, r.err)
}

func thousandArrive(f *fixture) {
	const total = 1000
	got := make(chan queue.Message)
	f.start(8, into(got))
	sending := make(chan error, 1)
	go func() { sending <- send(f, "", total) }()
	collect(f, got, total)
	require.NoError(f, receive(f, sending, "the sender"))
}

func waitsForARunner(f *fixture) {
	f.enqueue(message("tsk_early"))
	for range 2 { // a runner that comes and goes leaves what it did not take
		r := f.start(1, func(context.Context, queue.Message) {})
		r.stop()
	}
	f.enqueue(message("tsk_late"))
	got := make(chan queue.Message)
	f.start(1, into(got))
	for receive(f, got, "the late message").TaskID != "tsk_late" {
	}
}

func concurrentEnqueue(f *fixture) {
	const senders, each = 4, 50
	got, sending := make(chan queue.Message), make(chan error, senders)
	f.start(4, into(got))
	for s := range senders {
		go func() { sending <- send(f, fmt.Sprint(s), each) }()
	}
	collect(f, got, senders*each)
	for range senders {
		require.NoError(f, receive(f, sending, "a sender"))
	}
}

func enqueueHonoursContext(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	require.Error(f, f.q.Enqueue(ctx, message("tsk_never")))
}

func wipedQueueStartsOver(f *fixture) {
	m := message("tsk_wiped")
	f.enqueue(m)
	f.wipe()
	f.enqueue(m)
	got := make(chan queue.Message)
	f.start(1, into(got))
	require.Equal(f, m, receive(f, got, "the message after the wipe"))
}

func wipeUnderHandler(f *fixture) {
	m := message("tsk_running")
	taken, release := make(chan queue.Message), make(chan struct{})
	f.start(1, func(ctx context.Context, m queue.Message) {
		into(taken)(ctx, m)
		select {
		case <-release:
		case <-ctx.Done():
		}
	})
	f.enqueue(m)
	receive(f, taken, "the message before the wipe")
	f.wipe()
	close(release)
	f.enqueue(m)
	require.Equal(f, m, receive(f, taken, "the message after the wipe"))
}

// send enqueues n messages whose names begin with prefix.
func send(f *fixture, prefix string, n int) error {
	for i := range n {
		if err := f.q.Enqueue(f.ctx, message(fmt.Sprintf("tsk_%s_%d", prefix, i))); err != nil {
			return err
		}
	}
	return nil
}

// collect waits for n different messages and returns them.
func collect(f *fixture, got <-chan queue.Message, n int) []queue.Message {
	f.Helper()
	seen := make(map[queue.Message]bool, n)
	var all []queue.Message
	for len(all) < n {
		m := receive(f, got, fmt.Sprintf("message %d of %d", len(all)+1, n))
		if !seen[m] {
			seen[m] = true
			all = append(all, m)
		}
	}
	return all
}
