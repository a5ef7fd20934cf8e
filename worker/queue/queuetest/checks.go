package queuetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/worker/queue"
)

func newMessage(id string) queue.Message { return queue.Message{TaskID: id, Kind: "node.create"} }

func deliversUnchanged(f *fixture) {
	sent := []queue.Message{
		{TaskID: "tsk_1", Kind: "node.create"},
		{TaskID: "tsk_1", Kind: "node.create", Attempt: 1},
		{TaskID: "tsk_1", Kind: "node.create", Attempt: 1, Epoch: 2},
		{TaskID: "tsk_2", Kind: "node.delete", Attempt: 1 << 30, Epoch: 1 << 30},
		{TaskID: `odd "id" {ü} 50%`, Kind: "ünïcode <kind>\n"},
	}
	f.enqueueAll(sent...)
	got := make(chan queue.Message)
	f.startRun(2, sendTo(got))
	require.ElementsMatch(f, sent, collectMessages(f, got, len(sent)))
}

func repeatIsHarmless(f *fixture) {
	m, last := newMessage("tsk_repeat"), newMessage("tsk_last")
	f.enqueueAll(m, m, m, last)
	var times atomic.Int64
	first, end := make(chan struct{}), make(chan struct{})
	var once, onceEnd sync.Once
	r := f.startRun(1, func(_ context.Context, got queue.Message) {
		if got == last {
			onceEnd.Do(func() { close(end) })
			return
		}
		times.Add(1)
		once.Do(func() { close(first) })
	})
	receiveValue(f, first, "the repeated message")
	receiveValue(f, end, "the message after it")
	r.stopRun()
	require.LessOrEqual(f, times.Load(), int64(2))
}

// anotherEpochIsNew stages a worker that dies between taking a message and
// claiming its row: the dispatcher's way out is the next epoch.
func anotherEpochIsNew(f *fixture) {
	m := newMessage("tsk_lost")
	f.enqueueAll(m)
	taken := make(chan queue.Message, 1)
	r := f.startRun(1, func(ctx context.Context, m queue.Message) {
		taken <- m
		<-ctx.Done()
	})
	receiveValue(f, taken, "the message that gets lost")
	r.stopRun()

	m.Epoch++
	f.enqueueAll(m)
	got := make(chan queue.Message)
	f.startRun(1, sendTo(got))
	for receiveValue(f, got, "the next epoch") != m {
	}
}

func concurrencyIsLimited(f *fixture) {
	const limit, total = 3, 9
	for i := range total {
		f.enqueueAll(newMessage(fmt.Sprintf("tsk_%d", i)))
	}
	started, release, ended := make(chan struct{}, total), make(chan struct{}), make(chan struct{}, total)
	f.startRun(limit, func(context.Context, queue.Message) {
		started <- struct{}{}
		<-release
		ended <- struct{}{}
	})
	open := sync.OnceFunc(func() { close(release) })
	f.Cleanup(open)
	for range limit {
		receiveValue(f, started, "handlers side by side")
	}
	requireSilence(f, started, "more handlers ran than the concurrency allows")
	open()
	for range total {
		receiveValue(f, ended, "the handlers' end")
	}
}

func panicIsContained(f *fixture) {
	bad, good := newMessage("tsk_bad"), newMessage("tsk_good")
	panicking, got := make(chan struct{}, 1), make(chan queue.Message)
	deliver := sendTo(got)
	r := f.startRun(1, func(ctx context.Context, m queue.Message) {
		if m == bad {
			panicking <- struct{}{}
			panic("a handler's bug")
		}
		deliver(ctx, m)
	})
	f.enqueueAll(bad)
	receiveValue(f, panicking, "the panic")
	f.enqueueAll(good)
	require.Equal(f, good, receiveValue(f, got, "the message after the panic"))
	select {
	case <-r.done:
		f.Fatal("Run ended because a handler panicked")
	default:
	}
}

func endReachesHandlers(f *fixture) {
	f.enqueueAll(newMessage("tsk_long"))
	taken, ended := make(chan struct{}, 1), make(chan error, 1)
	r := f.startRun(1, func(ctx context.Context, _ queue.Message) {
		taken <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
	})
	receiveValue(f, taken, "the message")
	r.cancel()
	require.ErrorIs(f, receiveValue(f, ended, "the handler's context to end"), context.Canceled)
	receiveValue(f, r.done, "Run to return")
}

func runWaits(f *fixture) {
	f.enqueueAll(newMessage("tsk_slow"))
	taken, release := make(chan struct{}, 1), make(chan struct{})
	var finished atomic.Bool
	r := f.startRun(2, func(context.Context, queue.Message) {
		taken <- struct{}{}
		<-release
		finished.Store(true)
	})
	receiveValue(f, taken, "the message")
	r.cancel()
	requireSilence(f, r.done, "Run returned while a handler was running")
	close(release)
	receiveValue(f, r.done, "Run to return")
	require.True(f, finished.Load())
	require.NoError(f, r.err)
}

func thousandArrive(f *fixture) {
	const total = 1000
	got := make(chan queue.Message)
	f.startRun(8, sendTo(got))
	sending := make(chan error, 1)
	go func() { sending <- sendMessages(f, "", total) }()
	collectMessages(f, got, total)
	require.NoError(f, receiveValue(f, sending, "the sender"))
}

func waitsForARunner(f *fixture) {
	f.enqueueAll(newMessage("tsk_early"))
	for range 2 { // a runner that comes and goes leaves what it did not take
		r := f.startRun(1, func(context.Context, queue.Message) {})
		r.stopRun()
	}
	f.enqueueAll(newMessage("tsk_late"))
	got := make(chan queue.Message)
	f.startRun(1, sendTo(got))
	for receiveValue(f, got, "the late message").TaskID != "tsk_late" {
	}
}

func concurrentEnqueue(f *fixture) {
	const senders, each = 4, 50
	got, sending := make(chan queue.Message), make(chan error, senders)
	f.startRun(4, sendTo(got))
	for s := range senders {
		go func() { sending <- sendMessages(f, fmt.Sprint(s), each) }()
	}
	collectMessages(f, got, senders*each)
	for range senders {
		require.NoError(f, receiveValue(f, sending, "a sender"))
	}
}

func enqueueHonoursContext(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	require.Error(f, f.q.Enqueue(ctx, newMessage("tsk_never")))
}

func wipedQueueStartsOver(f *fixture) {
	m := newMessage("tsk_wiped")
	f.enqueueAll(m)
	f.wipe()
	f.enqueueAll(m)
	got := make(chan queue.Message)
	f.startRun(1, sendTo(got))
	require.Equal(f, m, receiveValue(f, got, "the message after the wipe"))
}

func wipeUnderHandler(f *fixture) {
	m := newMessage("tsk_running")
	taken, release := make(chan queue.Message), make(chan struct{})
	f.startRun(1, func(ctx context.Context, m queue.Message) {
		sendTo(taken)(ctx, m)
		select {
		case <-release:
		case <-ctx.Done():
		}
	})
	f.enqueueAll(m)
	receiveValue(f, taken, "the message before the wipe")
	f.wipe()
	close(release)
	f.enqueueAll(m)
	require.Equal(f, m, receiveValue(f, taken, "the message after the wipe"))
}

// sendMessages enqueues n messages whose names begin with prefix.
func sendMessages(f *fixture, prefix string, n int) error {
	for i := range n {
		if err := f.q.Enqueue(f.ctx, newMessage(fmt.Sprintf("tsk_%s_%d", prefix, i))); err != nil {
			return err
		}
	}
	return nil
}

// collectMessages waits for n different messages and returns them.
func collectMessages(f *fixture, got <-chan queue.Message, n int) []queue.Message {
	f.Helper()
	seen := make(map[queue.Message]bool, n)
	var all []queue.Message
	for len(all) < n {
		m := receiveValue(f, got, fmt.Sprintf("message %d of %d", len(all)+1, n))
		if !seen[m] {
			seen[m] = true
			all = append(all, m)
		}
	}
	return all
}
