package gpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/contract"
)

const (
	// mostHung is how many children may hang at once before no other is started.
	mostHung = 3
	// mostLine bounds one answer of a child, in bytes.
	mostLine = 1 << 20
)

// answer is a child's line.
type answer struct {
	Look      contract.NodeLook `json:"look"`
	Events    []Event           `json:"events,omitempty"`
	HearsXIDs bool              `json:"hears_xids,omitempty"`
	Error     string            `json:"error,omitempty"`
	NoDriver  bool              `json:"no_driver,omitempty"`
	Clocks    []ClockReset      `json:"clocks,omitempty"`
	Settings  settingsOf        `json:"settings,omitempty"`
	Restored  []Restored        `json:"restored,omitempty"`
}

// Child asks NVIDIA's library in a child process.
type Child struct {
	Command []string // the program that serves NVML, such as this one with nvml-child
	// PCIe has each look measure the throughput of PCIe, which takes 40 ms for each GPU.
	PCIe     bool
	Deadline time.Duration // for one look; 10 s when zero: without persistence mode the driver starts anew

	running *process
	hung    atomic.Int32
}

// process is one child that answers.
type process struct {
	in  io.WriteCloser
	out chan []byte // its lines; closed when it has ended
}

// Look has the child look. One that does not answer is abandoned.
func (c *Child) Look(ctx context.Context) (Reading, error) {
	words := lookWord
	if c.PCIe {
		words += " " + pcieWord
	}
	a, err := c.tell(ctx, words)
	return Reading{Look: a.Look, Events: a.Events, HearsXIDs: a.HearsXIDs}, err
}

// tell has the child do something, by a line of words.
func (c *Child) tell(ctx context.Context, words string) (answer, error) {
	if c.running == nil {
		p, err := c.start()
		if err != nil {
			return answer{}, err
		}
		c.running = p
	}
	line, err := c.ask(ctx, c.running, words)
	if err != nil {
		c.running = nil
		return answer{}, err
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		c.Close()
		return answer{}, fmt.Errorf("reading what the NVML child said: %w", err)
	}
	switch {
	case a.NoDriver:
		c.Close() // a driver that comes later is found by a new child
		return answer{}, noDriver(a.Error)
	case a.Error != "":
		c.Close()
		return answer{}, fmt.Errorf("asking NVML: %s", a.Error)
	}
	return a, nil
}

// noDriver is ErrNoDriver with what the child said of it, which may begin with the same words.
func noDriver(said string) error {
	said = strings.TrimPrefix(strings.TrimPrefix(said, ErrNoDriver.Error()), ": ")
	if said == "" {
		return ErrNoDriver
	}
	return fmt.Errorf("%w: %s", ErrNoDriver, said)
}

// Close has the child end, which closes its session with the driver.
func (c *Child) Close() {
	if c.running != nil {
		_ = c.running.in.Close()
		c.running = nil
	}
}

// start starts a child without this process's environment, which may hold secrets.
func (c *Child) start() (*process, error) {
	if n := c.hung.Load(); n >= mostHung {
		return nil, fmt.Errorf("the driver hangs: %d processes wait for it, and no other is started", n)
	}
	run := exec.Command(c.Command[0], c.Command[1:]...) //nolint:gosec,noctx // our own program, never killed: see Child
	run.Env = DriverEnvironment()
	in, err1 := run.StdinPipe()
	out, err2 := run.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("starting the NVML child: %w", err)
	}
	if err := run.Start(); err != nil {
		return nil, fmt.Errorf("starting the NVML child: %w", err)
	}
	p := &process{in: in, out: make(chan []byte, 1)}
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, mostLine)
		for lines.Scan() {
			select {
			case p.out <- append([]byte(nil), lines.Bytes()...):
			default: // nobody asked
			}
		}
		_ = run.Wait()
		close(p.out)
	}()
	return p, nil
}

// DriverEnvironment is of this process's environment what a process that loads the driver's library needs.
func DriverEnvironment() []string {
	var env []string
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func (c *Child) ask(ctx context.Context, p *process, words string) ([]byte, error) {
	if _, err := io.WriteString(p.in, words+"\n"); err != nil {
		c.abandon(p)
		return nil, fmt.Errorf("asking the NVML child: %w", err)
	}
	deadline := c.Deadline
	if deadline == 0 {
		deadline = 10 * time.Second
	}
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case line, ok := <-p.out:
		if !ok {
			return nil, errors.New("the NVML child ended: the driver's library may lack a function")
		}
		return line, nil
	case <-timer.C:
		c.abandon(p)
		return nil, fmt.Errorf("the driver did not answer within %s", deadline)
	case <-ctx.Done():
		c.abandon(p)
		return nil, ctx.Err()
	}
}

// abandon leaves a child alone. It ends when the driver lets it, as its input is closed.
func (c *Child) abandon(p *process) {
	_ = p.in.Close()
	c.hung.Add(1)
	go func() {
		for range p.out {
		}
		c.hung.Add(-1)
	}()
}
