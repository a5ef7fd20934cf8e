package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/memory"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/peers"
)

// Kind says what a process serves.
type Kind string

// What can be measured.
const (
	Ours      Kind = "ours"      // the server, as `forewarm server` runs it, without limits on requests per key
	Ceiling   Kind = "ceiling"   // decodes the JSON and answers 201
	Unbatched Kind = "unbatched" // decodes the JSON, then BEGIN, one INSERT and COMMIT
	Embedded  Kind = "sqlite"    // ours on a SQLite file, as `forewarm up` keeps it
	Worker    Kind = "worker"    // a worker with a simulated cloud; it serves nothing
)

// The environment of a process that serves.
const (
	kindVariable     = "FOREWARM_BENCH_SERVE"
	databaseVariable = "FOREWARM_BENCH_DATABASE"
	pepperVariable   = "FOREWARM_BENCH_PEPPER"
	profileVariable  = "FOREWARM_BENCH_CPUPROFILE"
	listenVariable   = "FOREWARM_BENCH_LISTEN"
)

// serveKind answers requests until its input ends, as it does when whoever started
// it is gone, however that came about.
func serveKind(ctx context.Context, kind Kind) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	memory.Relax() // as forewarm server does, and for the yardsticks too
	handler, done, err := handlerOf(ctx, kind, os.Getenv(databaseVariable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	stop, err := startProfile(os.Getenv(profileVariable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", os.Getenv(listenVariable))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	s := httpx.NewServer("", handler)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	fmt.Println(l.Addr())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("waiting for the end: %w", err)
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("making the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("profiling: %w", err), f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

func handlerOf(ctx context.Context, kind Kind, database string) (h http.Handler, done func() error, err error) {
	switch kind {
	case Ours, Embedded:
		return ourServer(ctx, database)
	case Ceiling:
		return ceilingServer(), func() error { return nil }, nil
	case Unbatched:
		return unbatchedServer(ctx, database)
	case Worker:
		return runWorker(ctx, database)
	default:
		return nil, nil, fmt.Errorf("nothing serves %q", kind)
	}
}

// ourServer is the real server with its log, which goes nowhere, and its metrics.
func ourServer(ctx context.Context, database string) (http.Handler, func() error, error) {
	pepper, err := keys.ParsePepper(os.Getenv(pepperVariable))
	if err != nil {
		return nil, nil, err
	}
	registry := obs.NewRegistry()
	metrics, err := obs.NewMetrics(registry)
	if err != nil {
		return nil, nil, fmt.Errorf("making metrics: %w", err)
	}
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log: %w", err)
	}
	store, l, err := openLedger(ctx, database, uint64(os.Getpid())) //nolint:gosec // a pid is not negative
	if err != nil {
		return nil, nil, err
	}
	unlimited := auth.Rate{PerSecond: -1}
	var config net.ListenConfig
	others, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("listening for other servers: %w", err), store.Close())
	}
	s, err := server.New(server.Config{
		Ledger: l, Clock: clock.System{}, Logger: obs.NewLogger(log, obs.Config{}), Metric: metrics, Gather: registry,
		Peppers: []keys.Pepper{pepper}, Environment: "bench", Version: "bench",
		Limits: server.Limits{Reads: unlimited, Writes: unlimited, Agents: unlimited, OrganizationWrites: unlimited,
			Failures: unlimited},
		Peers: &peers.Config{Peers: store, ID: ids.UUID{}.New(ids.Server), Listener: others,
			Address: others.Addr().String()},
	})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() error { cancel(); return errors.Join(<-ended, store.Close(), log.Close()) }, nil
}

// made is the yardsticks' answer, the least that a client can do something with.
type made struct {
	ID string `json:"id"`
}

// routeReservations routes the one request of the yardsticks.
func routeReservations(answer func(*gin.Context, contract.ReservationCreate) (string, error)) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.POST("/v1/reservations", func(c *gin.Context) {
		var in contract.ReservationCreate
		if err := json.NewDecoder(c.Request.Body).Decode(&in); err != nil {
			c.String(http.StatusBadRequest, err.Error())
			return
		}
		id, err := answer(c, in)
		if err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.JSON(http.StatusCreated, made{ID: id})
	})
	return e
}

func ceilingServer() http.Handler {
	return routeReservations(func(*gin.Context, contract.ReservationCreate) (string, error) {
		return ids.UUID{}.New(ids.Reservation), nil
	})
}

// unbatchedTable is smaller than the ledger's: a row without a place, without an
// event, and with one index beside the key.
const unbatchedTable = `CREATE TABLE unbatched (
	id TEXT COLLATE "C" NOT NULL PRIMARY KEY, organization_id TEXT NOT NULL, pool_id TEXT NOT NULL,
	name TEXT NOT NULL, class TEXT NOT NULL, state TEXT NOT NULL, gpus BIGINT NOT NULL,
	window_start BIGINT NOT NULL, window_end BIGINT NOT NULL, created_at BIGINT NOT NULL);
	CREATE INDEX unbatched_page ON unbatched (organization_id, id)`

// unbatchedConns is as many as the ledger keeps.
const unbatchedConns = 16

// unbatchedServer is what an application writes first: each request its own
// transaction on a connection from a pool.
func unbatchedServer(ctx context.Context, database string) (http.Handler, func() error, error) {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, nil, errors.New("the URL of PostgreSQL cannot be read")
	}
	config.MaxConns = unbatchedConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	if _, err := pool.Exec(ctx, unbatchedTable); err != nil {
		return nil, nil, fmt.Errorf("making the table: %w", err)
	}
	h := routeReservations(func(c *gin.Context, in contract.ReservationCreate) (string, error) {
		return insertReservation(c.Request.Context(), pool, in)
	})
	return h, func() error { pool.Close(); return nil }, nil
}

func insertReservation(ctx context.Context, pool *pgxpool.Pool, in contract.ReservationCreate) (string, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return "", fmt.Errorf("beginning: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing, once it is committed
	id := ids.UUID{}.New(ids.Reservation)
	_, err = tx.Exec(ctx, "INSERT INTO unbatched VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
		id, "org", in.Pool, in.Name, "guaranteed", "booked", in.GPUs, in.Start.UnixMicro(), in.End.UnixMicro(),
		time.Now().UnixMicro())
	if err != nil {
		return "", fmt.Errorf("inserting: %w", err)
	}
	return id, tx.Commit(ctx)
}
