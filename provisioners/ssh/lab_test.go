package ssh_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/ssh"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// lab is a room of machines: real SSH servers that run real shells, each with a
// home of its own and a pretended driver.
type lab struct {
	t        *testing.T
	clock    *clock.Manual
	machines []*machine
	config   ssh.Config

	mu     sync.Mutex
	refuse int               // so many connections are closed at once
	faults map[string]effect // by verb, for its next call
	calls  []string          // verbs that were run
}

type effect int

const (
	_    effect = iota
	mute        // done, and the connection breaks before it is said
	lie         // not done, and the answer is that there is nothing
)

type machine struct {
	lab    *lab
	name   string
	home   string
	key    xssh.Signer
	listen net.Listener
}

// newLab is a lab of n machines of type big, and one of type small.
func newLab(t *testing.T, n int) *lab {
	l := &lab{t: t, clock: clock.NewManual(start), faults: map[string]effect{}}
	folder := t.TempDir()
	signer, identity := newKey(t)
	l.config = ssh.Config{
		User: "operator", IdentityFile: filepath.Join(folder, "id"), KnownHosts: filepath.Join(folder, "known_hosts"),
		KeepProcesses: true, // this machine is not the lab's to clean
		Timeout:       5 * time.Minute, ConnectTimeout: 5 * time.Minute, ProbeTimeout: time.Minute,
	}
	require.NoError(t, os.WriteFile(l.config.IdentityFile, identity, 0o600))
	var known bytes.Buffer
	for i := range n + 1 {
		m := l.addMachine(fmt.Sprint("gpu-", i), signer.PublicKey())
		host := ssh.Host{
			Name: m.name, Address: m.listen.Addr().String(), Type: "big", Region: "lab", Model: "h100-80g", GPUs: 2,
			MemoryMiB: 81_920,
			Price:     provisioners.Price(2 * money.USD),
		}
		if i == n {
			host.Type, host.GPUs = "small", 1
		}
		m.setGPUs(host.GPUs)
		l.config.Hosts = append(l.config.Hosts, host)
		fmt.Fprintln(&known, knownhosts.Line([]string{host.Address}, m.key.PublicKey()))
	}
	require.NoError(t, os.WriteFile(l.config.KnownHosts, known.Bytes(), 0o600))
	t.Cleanup(l.awaitDetached)
	return l
}

func newKey(t *testing.T) (xssh.Signer, []byte) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := xssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := xssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

func (l *lab) openFleet() *ssh.Fleet {
	l.t.Helper()
	f, err := ssh.New(l.config, l.clock)
	require.NoError(l.t, err)
	return f
}

// addMachine starts a machine that lets the key in.
func (l *lab) addMachine(name string, key xssh.PublicKey) *machine {
	m := &machine{lab: l, name: name, home: l.t.TempDir()}
	m.key, _ = newKey(l.t)
	require.NoError(l.t, os.Mkdir(filepath.Join(m.home, "bin"), 0o700))
	const smi = "#!/bin/sh\nif [ -e \"$HOME/hang\" ]; then exec sleep 1000; fi\ncat \"$HOME/gpus\"\n[ ! -e " +
		"\"$HOME/broken\" ]\n"
	require.NoError(l.t, forklock.WriteProgram(filepath.Join(m.home, "bin", "nvidia-smi"), smi))
	settings := &xssh.ServerConfig{PublicKeyCallback: func(meta xssh.ConnMetadata,
		offered xssh.PublicKey) (*xssh.Permissions, error) {
		if meta.User() != "operator" || !bytes.Equal(offered.Marshal(), key.Marshal()) {
			return nil, fmt.Errorf("no such user or key")
		}
		return nil, nil
	}}
	settings.AddHostKey(m.key)
	var err error
	m.listen, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(l.t, err)
	var serving sync.WaitGroup
	serving.Go(func() { m.acceptConnections(settings, &serving) })
	l.t.Cleanup(func() {
		m.listen.Close()
		serving.Wait()
	})
	l.machines = append(l.machines, m)
	return m
}

func (m *machine) acceptConnections(settings *xssh.ServerConfig, serving *sync.WaitGroup) {
	for {
		raw, err := m.listen.Accept()
		if err != nil {
			return
		}
		if m.lab.takeRefusal() {
			raw.Close()
			continue
		}
		serving.Go(func() {
			defer raw.Close()
			conn, channels, requests, err := xssh.NewServerConn(raw, settings)
			if err != nil {
				return
			}
			go xssh.DiscardRequests(requests)
			for channel := range channels {
				m.serveSession(conn, channel)
			}
		})
	}
}

func (l *lab) takeRefusal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse == 0 {
		return false
	}
	l.refuse--
	return true
}

var mainCall = regexp.MustCompile(`(?m)^main '([a-z]+)'`)

// serveSession runs one command, and breaks where a fault says so.
func (m *machine) serveSession(conn *xssh.ServerConn, offered xssh.NewChannel) {
	channel, requests, err := offered.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		var asked struct{ Command string }
		_ = xssh.Unmarshal(request.Payload, &asked)
		_ = request.Reply(true, nil)
		input, _ := io.ReadAll(channel)
		verb := "put"
		if found := mainCall.FindSubmatch(input); found != nil {
			verb = string(found[1])
		}
		fault := m.lab.takeFault(verb)
		code := 0
		if fault == lie {
			fmt.Fprint(channel, "forewarm 1\nstate unknown\nend\n")
		} else {
			code = m.runCommand(asked.Command, input, channel, fault)
		}
		if fault == mute {
			conn.Close()
			return
		}
		_, _ = channel.SendRequest("exit-status", false, xssh.Marshal(struct{ Status uint32 }{uint32(code)}))
		return
	}
}

func (l *lab) takeFault(verb string) effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, verb)
	e := l.faults[verb]
	delete(l.faults, verb)
	return e
}

func (l *lab) injectFault(verb string, e effect) func() {
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.faults[verb] = e
	}
}

func (l *lab) refuseNext(n int) func() {
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refuse = n
	}
}

// runCommand is what sshd does: the login shell runs the command. What it left running
// may not hold the output.
func (m *machine) runCommand(text string, input []byte, channel xssh.Channel, fault effect) int {
	command := osexec.Command("/bin/sh", "-c", "echo a talkative login; "+text)
	command.Dir = m.home
	command.Env = []string{"HOME=" + m.home, "PATH=" + filepath.Join(m.home, "bin") + ":" + os.Getenv("PATH")}
	var output, errs bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &output, &errs
	err := command.Run()
	if fault == mute {
		return 0
	}
	_, _ = channel.Write(output.Bytes())
	_, _ = channel.Stderr().Write(errs.Bytes())
	if err != nil {
		return max(1, command.ProcessState.ExitCode())
	}
	return 0
}

// setGPUs gives the machine so many healthy GPUs.
func (m *machine) setGPUs(n int) {
	var rows string
	for i := range n {
		rows += fmt.Sprintf("GPU-%s-%d, %d, NVIDIA H100 80GB HBM3, 81559, 0\n", m.name, i, i)
	}
	m.setDriverOutput(rows)
}

// setDriverOutput makes the driver say that.
func (m *machine) setDriverOutput(rows string) { m.writeFile("gpus", rows) }

func (m *machine) writeFile(name, text string) {
	require.NoError(m.lab.t, os.WriteFile(filepath.Join(m.home, name), []byte(text), 0o600))
}

// claimsFolder is the machine's folder of claims.
func (m *machine) claimsFolder() string {
	found, err := filepath.Glob(filepath.Join(m.home, ".forewarm", "*"))
	require.NoError(m.lab.t, err)
	if len(found) == 0 {
		return filepath.Join(m.home, "nothing yet")
	}
	return found[0]
}

// awaitDetached waits for every detached process: each holds a lock while it lives.
func (l *lab) awaitDetached() {
	for _, m := range l.machines {
		locks, err := filepath.Glob(filepath.Join(m.claimsFolder(), "claims", "*", "*.lock"))
		require.NoError(l.t, err)
		for _, path := range locks {
			file, err := os.Open(path)
			if err != nil {
				continue
			}
			require.NoError(l.t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
			file.Close()
		}
	}
}
