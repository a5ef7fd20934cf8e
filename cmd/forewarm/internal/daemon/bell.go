package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/queue/asynqueue"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
	"github.com/forewarm/forewarm/worker/queue/standby"
)

// redisLook is how long a server's start may take to look at Redis, which it does
// not use.
const redisLook = time.Second

// bell is a queue that can tell that it works without what it should work with.
type bell interface {
	queue.Queue
	OutageText() string
}

type inProcess struct{ *memqueue.Queue }

func (inProcess) OutageText() string { return "" }

// checkRedis refuses a Redis that says no, such as for a database that it does not
// have. One that does not answer, or cannot be reached from here, may come.
func (c Config) checkRedis(ctx context.Context) error {
	if c.isEmbedded() {
		return nil
	}
	q, err := asynqueue.New(asynqueue.Config{URL: c.Redis, Namespace: c.Deployment})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, redisLook)
	defer cancel()
	if err := q.Ping(ctx); err != nil && !isTransient(err) {
		return errors.Join(err, q.Close())
	}
	return q.Close()
}

// openQueue opens the queue. Redis may be away: work is done without it. What it
// answers, such as that the password is wrong, ends the start.
func (a *app) openQueue(ctx context.Context) (bell, error) {
	if a.cfg.isEmbedded() {
		return inProcess{memqueue.New(a.log)}, nil
	}
	q, err := asynqueue.New(asynqueue.Config{URL: a.cfg.Redis, Namespace: a.cfg.Deployment, Logger: a.log})
	if err != nil {
		return nil, err
	}
	if err := tryOnce(ctx, q.Ping); err != nil && !isTransient(err) {
		return nil, errors.Join(err, q.Close())
	}
	name := "Redis at " + obs.ScrubURL(a.cfg.Redis.Reveal())
	return standby.New(q, standby.Config{Name: name, Clock: a.clock, Logger: a.log, Metrics: a.metrics}), nil
}
