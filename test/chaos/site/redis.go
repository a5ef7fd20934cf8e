package site

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/internal/forklock"
)

// Redis is a Redis server of our own. It keeps nothing on disk: whoever trusts
// it loses everything when it ends.
type Redis struct {
	*Process
	Port     int
	password string
}

func newRedis(ctx context.Context, s *Site) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("Redis is not installed (Debian and Ubuntu: apt-get install redis-server)")
	}
	r := &Redis{Port: forklock.FreePort(), password: s.secret}
	r.Process = s.newProcess("redis", func() *exec.Cmd {
		//nolint:gosec,noctx // the installed server, which outlives the call that starts it
		return exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(r.Port), "--requirepass", r.password,
			"--dir", s.Dir, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
	})
	if err := r.Up(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Up starts the server and waits until it answers.
func (r *Redis) Up(ctx context.Context) error {
	if err := r.Start(); err != nil {
		return err
	}
	if err := retryUntil(ctx, ending, func(ctx context.Context) error {
		return r.runCommand(ctx,
			"PING")
	}); err != nil {
		return fmt.Errorf("waiting for Redis: %w", err)
	}
	return nil
}

// Flush has it forget everything.
func (r *Redis) Flush(ctx context.Context) error { return r.runCommand(ctx, "FLUSHALL") }

// runCommand sends one inline command. It takes no client library: package asynqueue is
// the one place that has one.
func (r *Redis) runCommand(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)))
	if err != nil {
		return fmt.Errorf("reaching Redis: %w", err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\n%s\r\n", r.password, command); err != nil {
		return fmt.Errorf("asking Redis: %w", err)
	}
	answers := bufio.NewReader(conn)
	for range 2 {
		line, err := answers.ReadString('\n')
		if err != nil {
			return fmt.Errorf("reading Redis' answer: %w", err)
		}
		if line[0] != '+' {
			return fmt.Errorf("Redis answered %q to %s", line, command)
		}
	}
	return nil
}

func (r *Redis) urlThrough(port int) string {
	return fmt.Sprintf("redis://default:%s@127.0.0.1:%d/0", r.password, port)
}
