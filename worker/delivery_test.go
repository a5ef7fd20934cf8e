package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

// threefold delivers every message three times at once.
type threefold struct{ *memqueue.Queue }

func (q threefold) Step(ctx context.Context, h queue.Handler) bool {
	return q.Queue.Step(ctx, func(ctx context.Context, m queue.Message) {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { h(ctx, m) })
		}
		all.Wait()
	})
}

// Queues deliver twice, and not one after the other: asynq does it whenever a
// worker is paused. Whatever comes three times at once happens once.
func TestTrapBThreeDeliveriesAtOnceAreOneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{queue: threefold{memqueue.New(silentLogger())}})
	w.livePromise()
	w.requireOnce()
}

// fickle loses, repeats and keeps back messages as chance has it.
type fickle struct {
	*memqueue.Queue
	chance *rand.Rand
	kept   *[]queue.Message
}

func (q fickle) Enqueue(ctx context.Context, m queue.Message) error {
	switch q.chance.IntN(4) {
	case 0:
		return nil // Redis was emptied
	case 1:
		*q.kept = append(*q.kept, m)
		return nil
	case 2:
		*q.kept = append(*q.kept, m)
	}
	for _, late := range *q.kept {
		if q.chance.IntN(3) == 0 {
			if err := q.Queue.Enqueue(ctx, late); err != nil {
				return err
			}
		}
	}
	return q.Queue.Enqueue(ctx, m)
}

// Losing any messages at any time, and getting old ones again, ends as if
// nothing had happened.
func TestTrapCAQueueThatForgetsChangesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.startWorker(parts{queue: fickle{
				Queue: memqueue.New(silentLogger()), chance: rand.New(rand.NewPCG(seed, 0)), kept: &[]queue.Message{},
			}})
			w.livePromise()
			w.requireOnce()
		})
	}
}

// stopped is a provider whose first Create is carried out, and answers only when
// it is let go: the worker that called it is paused meanwhile.
type stopped struct {
	provisioners.Provisioner
	once          *sync.Once
	reached, goOn chan struct{}
}

func (s stopped) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	made, err := s.Provisioner.Create(ctx, token, spec)
	s.once.Do(func() {
		close(s.reached)
		<-s.goOn
	})
	return made, err
}

// A worker that was paused for longer than its lease finds, when it goes on,
// that its report is not wanted any more.
func TestAZombieChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := stopped{Provisioner: w.cloud, once: new(sync.Once), reached: make(chan struct{}), goOn: make(chan struct{})}
	w.startWorker(parts{cloud: slow})
	w.reserveNode(3*time.Minute, 30*time.Minute)
	ended := make(chan error, 1)
	zombie := w.worker
	go func() {
		for {
			if n, err := zombie.Step(t.Context()); n == 0 || err != nil {
				ended <- err
				return
			}
		}
	}()
	<-slow.reached

	w.startWorker(parts{})
	w.driveFor(4 * time.Minute)
	require.Equal(t, []node.State{node.Ready}, w.nodeStates())
	before, then := w.readNodes(), w.eventTypes()

	close(slow.goOn)
	require.NoError(t, <-ended)
	require.Equal(t, before, w.readNodes())
	require.Equal(t, then, w.eventTypes())
	require.Len(t, w.cloud.LivePerNode(), 1)
}
