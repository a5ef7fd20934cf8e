// Package asynqueue carries messages over Redis with hibiken/asynq, for
// installations of more than one process.
//
// It uses the least of asynq that delivers a message: no retries, no uniqueness
// locks, no scheduling, no retention. asynq's own recovery takes 55 to 165
// seconds and forgets everything with Redis, so leases and retries live in the
// ledger's rows, and a handler never fails as far as asynq is told.
//
// Redis 6.2 or later is needed. It should run with maxmemory-policy noeviction:
// an evicted lease leaves its message active for ever.
package asynqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/forewarm/forewarm/worker/queue"
)

var _ queue.Queue = (*Queue)(nil)

// Queue is a queue.Queue on Redis. Make one with New.
type Queue struct {
	cfg    Config
	redis  *redis.Client
	client *asynq.Client
}

// New checks cfg and returns a queue. It does not connect: the first Enqueue,
// Run or Ping does.
func New(cfg Config) (*Queue, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the Redis queue: %w", err)
	}
	opt, err := cfg.redisOptions()
	if err != nil {
		return nil, fmt.Errorf("configuring the Redis queue: %w", err)
	}
	rdb := redis.NewClient(opt)
	return &Queue{cfg: cfg, redis: rdb, client: asynq.NewClientFromRedisClient(rdb)}, nil
}

// Enqueue implements queue.Queue. A timed-out call may have arrived, so that its
// repeat finds the task's id taken; both are success.
func (q *Queue) Enqueue(ctx context.Context, m queue.Message) error {
	payload, err := encodeMessage(m)
	if err != nil {
		return fmt.Errorf("enqueueing task %s: %w", m.TaskID, err)
	}
	_, err = q.client.EnqueueContext(ctx, asynq.NewTask(taskType, payload),
		asynq.Queue(q.cfg.Namespace),
		asynq.TaskID(taskID(m)),
		asynq.MaxRetry(0),
		asynq.Timeout(q.cfg.Timeout),
	)
	if err == nil || errors.Is(err, asynq.ErrTaskIDConflict) || errors.Is(err, asynq.ErrDuplicateTask) {
		return nil
	}
	return fmt.Errorf("enqueueing task %s: %w", m.TaskID, err)
}

// Run implements queue.Queue. It returns an error if Redis cannot be reached at
// the start; later outages are logged and waited out.
func (q *Queue) Run(ctx context.Context, concurrency int, h queue.Handler) error {
	if concurrency < 1 {
		return fmt.Errorf("running the Redis queue: concurrency is %d, want 1 or more", concurrency)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := q.Ping(ctx); err != nil {
		if ctx.Err() != nil { // stopped before it began
			return nil
		}
		return fmt.Errorf("running the Redis queue: %w", err)
	}
	d := newDelivery(ctx, concurrency, h, q.cfg.Logger)
	server := asynq.NewServerFromRedisClient(q.redis, q.serverConfig(ctx, concurrency))
	if err := server.Start(d); err != nil {
		return fmt.Errorf("running the Redis queue: %w", err)
	}
	<-ctx.Done()
	server.Shutdown()
	d.running.Wait() // asynq walks away from handlers that outlive their lease or timeout
	return nil
}

// ErrUnreachable means that Redis does not answer, or not yet. A refusal, such as
// of the password, is none.
var ErrUnreachable = errors.New("the Redis server does not answer")

// Ping asks Redis for a sign of life, for readiness checks.
func (q *Queue) Ping(ctx context.Context) error {
	err := q.redis.Ping(ctx).Err()
	if err == nil {
		return nil
	}
	if isRefusal(err) {
		return fmt.Errorf("asking Redis at %s: %w", q.redis.Options().Addr, err)
	}
	return fmt.Errorf("reaching Redis at %s: %w: %w", q.redis.Options().Addr, ErrUnreachable, err)
}

// isRefusal reports whether Redis itself said no, to what it will not say yes to
// later either.
func isRefusal(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, passing := range []string{"LOADING ", "BUSY ", "TRYAGAIN ", "MASTERDOWN ", "CLUSTERDOWN "} {
		if strings.HasPrefix(answer.Error(), passing) {
			return false
		}
	}
	return true
}

// Close frees the connections to Redis.
func (q *Queue) Close() error {
	if err := q.redis.Close(); err != nil {
		return fmt.Errorf("closing the connections to Redis: %w", err)
	}
	return nil
}

func (q *Queue) serverConfig(ctx context.Context, concurrency int) asynq.Config {
	return asynq.Config{
		Concurrency:       concurrency,
		Queues:            map[string]int{q.cfg.Namespace: 1},
		TaskCheckInterval: q.cfg.PollInterval,
		// The end of ctx must not end asynq's own contexts: it would abandon the
		// handlers that Run has to wait for.
		BaseContext: func() context.Context { return context.WithoutCancel(ctx) },
		// By then every handler's own time is up.
		ShutdownTimeout: q.cfg.Timeout,
		Logger:          &bridge{log: q.cfg.Logger},
		LogLevel:        asynq.InfoLevel,
	}
}
