package sqlledger

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// urgentChannel is what processes that share a database of PostgreSQL listen on (LISTEN, NOTIFY).
const urgentChannel = "forewarm_urgent"

// urgency tells those who wait that somebody has committed what is urgent.
type urgency struct {
	signal   signal
	database *pgx.ConnConfig // of PostgreSQL; nil: there is only this process to tell
	begin    sync.Once
	work     sync.WaitGroup
	ctx      context.Context //nolint:containedctx // it ends with close
	cancel   context.CancelFunc
}

// Urgent is closed by the next transaction that is urgent. Whoever asks first has the store listen.
func (s *Store) Urgent() <-chan struct{} {
	wait := s.urgent.signal.wait()
	if s.urgent.database != nil {
		s.urgent.begin.Do(func() { s.urgent.work.Go(s.urgent.keepListening) })
	}
	return wait
}

// open has the process listen to a database, once somebody asks.
func (u *urgency) open(database *pgx.ConnConfig) {
	u.database = database
	u.ctx, u.cancel = context.WithCancel(context.Background())
}

func (u *urgency) close() error {
	u.cancel()
	u.work.Wait()
	return nil
}

// keepListening listens until the store is closed. While it cannot, as behind a pooler that lends
// connections by transaction, nobody is told: whoever waits looks now and then all the same.
func (u *urgency) keepListening() {
	for u.ctx.Err() == nil {
		_ = u.listen(u.ctx)
		again := time.NewTimer(listenAgain)
		select {
		case <-u.ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

// listenAgain is how soon it is listened again after the connection has ended.
const listenAgain = 2 * time.Second

// listen wakes whoever waits, each time that a process notifies, until its connection ends.
func (u *urgency) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, u.database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+urgentChannel); err != nil {
		return err
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		u.signal.wakeAll()
	}
}
