package site

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/internal/httpx"
)

// The names of the proxies.
const (
	PostgresProxy = "postgres"
	RedisProxy    = "redis"
	CloudProxy    = "cloud"
)

// DaemonProxy is the name of the proxy between the daemon on a slot of the rack and the servers.
func DaemonProxy(slot int) string { return fmt.Sprintf("servers from slot %d", slot+1) }

// Site is the whole installation.
type Site struct {
	Dir string // data and logs
	Programs
	Postgres *Postgres
	Redis    *Redis
	Cloud    *Cloud
	Rack     *Rack
	Proxies  map[string]*Proxy
	Servers  []*Server
	Workers  []*Process
	Key      string // the operator's

	processes processGroup
	proxies   *toxiproxy.ApiServer
	owner     *syscall.Credential // of PostgreSQL's processes
	secret    string
	pepper    string
	balancer  *balancer // before the servers, for daemons
	all       []*Process
}

// Programs are what is tried, and what helps: paths of programs.
type Programs struct {
	Binary     string // forewarm
	NodeBinary string // forewarm-node
	RackScript string // hands what the provisioner exec asks to AskRack
}

// Server is a process that serves the API.
type Server struct {
	*Process
	URL   string
	Peers *Proxy // before where it listens to the other servers
}

// Open starts everything below dir, which must be empty, with so many servers
// and workers of the programs.
func Open(ctx context.Context, dir string, programs Programs, servers, workers int) (_ *Site, err error) {
	s := &Site{Dir: dir, Programs: programs, Proxies: map[string]*Proxy{}, processes: newProcessGroup(),
		proxies: newProxies()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.owner, err = unprivilegedUser(); err != nil {
		return nil, err
	}
	if s.secret, err = drawSecret(16); err != nil {
		return nil, err
	}
	if s.pepper, err = drawSecret(32); err != nil {
		return nil, err
	}
	if err := s.startServices(ctx); err != nil {
		return nil, err
	}
	if err := s.migrateSchema(ctx); err != nil {
		return nil, err
	}
	return s, s.startProcesses(ctx, servers, workers)
}

func drawSecret(bytes int) (string, error) {
	random := make([]byte, bytes)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("drawing a secret: %w", err)
	}
	return hex.EncodeToString(random), nil
}

// startServices starts what forewarm calls.
func (s *Site) startServices(ctx context.Context) (err error) {
	if s.Postgres, err = newPostgres(ctx, s); err != nil {
		return err
	}
	if s.Redis, err = newRedis(ctx, s); err != nil {
		return err
	}
	if s.Cloud, err = newCloud(); err != nil {
		return err
	}
	if s.Rack, err = newRack(s.secret[:8], s.startHost); err != nil {
		return err
	}
	for name, port := range map[string]int{PostgresProxy: s.Postgres.Port, RedisProxy: s.Redis.Port,
		CloudProxy: s.Cloud.Port} {
		p, err := s.newProxy(name, port)
		if err != nil {
			return err
		}
		s.Proxies[name] = p
	}
	return nil
}

// migrateSchema makes the schema, the first key and the pools.
func (s *Site) migrateSchema(ctx context.Context) error {
	command, err := s.forewarmCommand("migrate", nil, "migrate")
	if err != nil {
		return err
	}
	cmd := command()
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := s.processes.startCommand(cmd); err != nil {
		return fmt.Errorf("migrating: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("migrating: %w\n%s", err, log.String())
	}
	s.Key = strings.TrimSpace(out.String())
	return nil
}

// startProcesses starts the servers and the workers.
func (s *Site) startProcesses(ctx context.Context, servers, workers int) error {
	for i := range servers {
		server, err := s.newServer(fmt.Sprintf("server-%d", i+1))
		if err != nil {
			return err
		}
		s.Servers = append(s.Servers, server)
		if err := server.Start(); err != nil {
			return err
		}
	}
	if err := s.openWayForDaemons(); err != nil {
		return err
	}
	for i := range workers {
		name := fmt.Sprintf("worker-%d", i+1)
		command, err := s.forewarmCommand(name, []string{
			fmt.Sprintf("FOREWARM_PUBLIC_URL=http://127.0.0.1:%d", s.balancer.Port)}, "worker")
		if err != nil {
			return err
		}
		s.Workers = append(s.Workers, s.newProcess(name, command))
		if err := s.Workers[i].Start(); err != nil {
			return err
		}
	}
	return s.Answering(ctx)
}

// openWayForDaemons puts a balancer before the servers, and before it a proxy for each slot of
// the rack.
func (s *Site) openWayForDaemons() (err error) {
	var servers []string
	for _, server := range s.Servers {
		servers = append(servers, strings.TrimPrefix(server.URL, "http://"))
	}
	if s.balancer, err = newBalancer(servers); err != nil {
		return err
	}
	for slot := range places {
		p, err := s.newProxy(DaemonProxy(slot), s.balancer.Port)
		if err != nil {
			return err
		}
		s.Proxies[p.Name] = p
	}
	return nil
}

// newServer is a server that is not started yet, with a proxy between it and the others.
func (s *Site) newServer(name string) (*Server, error) {
	address, peers := fmt.Sprintf("127.0.0.1:%d", forklock.FreePort()), forklock.FreePort()
	proxy, err := s.newProxy("peers of "+name, peers)
	if err != nil {
		return nil, err
	}
	command, err := s.forewarmCommand(name, []string{"FOREWARM_LISTEN=" + address,
		"FOREWARM_SERVER_PEERS_LISTEN=" + loopbackAddress(peers),
		"FOREWARM_SERVER_PEERS_ADDRESS=" + loopbackAddress(proxy.Port)}, "server")
	if err != nil {
		return nil, err
	}
	return &Server{Process: s.newProcess(name, command), URL: "http://" + address, Peers: proxy}, nil
}

// Answering waits until every server answers that it is ready.
func (s *Site) Answering(ctx context.Context) error {
	ask := httpx.NewClient(httpx.Config{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}})
	for _, server := range s.Servers {
		err := retryUntil(ctx, recovery, func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/readyz", nil)
			if err != nil {
				return err
			}
			resp, err := ask.Do(req) //nolint:bodyclose // Drain closes it
			if err != nil {
				return err
			}
			httpx.Drain(resp.Body)
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("it answers %s", resp.Status)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s (see %s): %w", server.Name, server.Log(), err)
		}
	}
	return nil
}

// newProcess is one that is not started yet.
func (s *Site) newProcess(name string, command func() *exec.Cmd) *Process {
	p := &Process{Name: name, group: s.processes, command: command, log: filepath.Join(s.Dir, name+".log")}
	s.all = append(s.all, p)
	return p
}

// Forewarm are the processes of the control plane.
func (s *Site) Forewarm() []*Process {
	var all []*Process
	for _, server := range s.Servers {
		all = append(all, server.Process)
	}
	return append(all, s.Workers...)
}

// Heal makes everything whole, whatever was broken, and waits until it works.
func (s *Site) Heal(ctx context.Context) error {
	s.Cloud.Heal()
	for _, name := range slices.Sorted(maps.Keys(s.Proxies)) {
		if err := s.Proxies[name].Heal(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(s.Postgres.Up(ctx), s.Redis.Up(ctx)); err != nil {
		return err
	}
	for _, p := range append(s.Forewarm(), s.Rack.Daemons()...) {
		if err := errors.Join(p.Start(), p.Resume()); err != nil {
			return err
		}
	}
	return s.Answering(ctx)
}

// Close ends everything. The folder stays.
func (s *Site) Close() error {
	for i := len(s.all) - 1; i >= 0; i-- {
		s.all[i].Kill()
	}
	for _, p := range s.Proxies {
		p.Cut()
	}
	var err error
	if s.Rack != nil {
		err = s.Rack.closeRack()
	}
	s.processes.closeGroup()
	if s.balancer != nil {
		err = errors.Join(err, s.balancer.closeAll())
	}
	if s.Cloud != nil {
		err = errors.Join(err, s.Cloud.closeServer())
	}
	return err
}

// Bill is every machine that was ever made for the deployment, whoever made it.
func (s *Site) Bill() []Machine { return append(s.Cloud.Bill(), s.Rack.bill(time.Now())...) }
