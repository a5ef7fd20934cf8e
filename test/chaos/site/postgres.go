package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forewarm/forewarm/internal/forklock"
)

// recovery is how long PostgreSQL may take to be up, after a crash too.
const recovery = 3 * time.Minute

// Postgres is a PostgreSQL server of our own. It waits for the disk, as in
// production: what it acknowledges survives every stop.
type Postgres struct {
	*Process
	Port     int
	password string
}

func newPostgres(ctx context.Context, s *Site) (*Postgres, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.Dir, "postgres")
	p := &Postgres{Port: forklock.FreePort(), password: s.secret}
	run := func(program string, args ...string) *exec.Cmd {
		//nolint:gosec,noctx // the installed server, which outlives the call that starts it
		cmd := exec.Command(filepath.Join(bin, program), args...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
		return cmd
	}
	if err := s.runInitdb(ctx, dir, run); err != nil {
		return nil, err
	}
	p.Process = s.newProcess("postgres", func() *exec.Cmd {
		return run("postgres", "-D", dir, "-p", strconv.Itoa(p.Port), "-c", "listen_addresses=127.0.0.1", "-c",
			"unix_socket_directories=",
			"-c", "max_connections=200", "-c", "log_checkpoints=off")
	})
	if err := p.Up(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (s *Site) runInitdb(ctx context.Context, dir string, run func(string, ...string) *exec.Cmd) error {
	secret := filepath.Join(s.Dir, "password")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(secret, []byte(s.secret), 0o600)); err != nil {
		return fmt.Errorf("making a place for PostgreSQL: %w", err)
	}
	if s.owner != nil { // PostgreSQL refuses to run as root
		for _, path := range []string{dir, secret} {
			if err := os.Chown(path, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
				return fmt.Errorf("giving PostgreSQL its place: %w", err)
			}
		}
	}
	cmd := run("initdb", "-D", dir, "-U", "forewarm", "-A", "scram-sha-256", "--pwfile="+secret, "--encoding=UTF8",
		"--locale=C", "--no-sync")
	if out, err := outputOf(ctx, cmd); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func outputOf(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	return cmd.CombinedOutput()
}

// postgresPrograms is the folder of the newest installed server.
func postgresPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is right
	slices.SortFunc(found, func(a, b string) int { return versionOf(b) - versionOf(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed (Debian and Ubuntu: apt-get install postgresql)")
	}
	return filepath.Dir(found[0]), nil
}

func versionOf(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // the pattern has it there; another name counts as none
	return n
}

// unprivilegedUser is who PostgreSQL runs as when we are root; nil when we are not.
func unprivilegedUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
	if err = errors.Join(err, gerr); err != nil {
		return nil, fmt.Errorf("reading the ids of user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Up starts the server and waits until it answers.
func (p *Postgres) Up(ctx context.Context) error {
	if err := p.Start(); err != nil {
		return err
	}
	err := retryUntil(ctx, recovery, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, p.URL())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return fmt.Errorf("waiting for PostgreSQL: %w", err)
	}
	return nil
}

// Crash stops the server at once, without a checkpoint, as `pg_ctl -m immediate
// stop` does.
func (p *Postgres) Crash() { p.endLife(syscall.SIGQUIT) }

// URL is the server's own address, which no proxy breaks.
func (p *Postgres) URL() string { return p.urlThrough(p.Port) }

func (p *Postgres) urlThrough(port int) string {
	return fmt.Sprintf("postgres://forewarm:%s@127.0.0.1:%d/postgres?sslmode=disable", p.password, port)
}
