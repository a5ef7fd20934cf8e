package burnin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/node/gpu"
)

// within is how long a child may take: to start the driver takes seconds, to write and read all of a GPU's memory less.
const within = 30 * time.Second

// mostSaid bounds what a child says, in bytes.
const mostSaid = 4096

// request is what a child is to do.
type request struct {
	UUID      string `json:"uuid"`
	Overwrite bool   `json:"overwrite"` // and no more: one pattern, zeros
}

// Children works on each GPU in a child process of its own. It is safe for concurrent use.
type Children struct {
	Command []string      // the program that serves them, such as this one with gpu-child
	Within  time.Duration // 0: half a minute

	mu   sync.Mutex
	hung map[string]int // by GPU: children that were left alone and have not ended
}

// Test has a child test a GPU.
func (c *Children) Test(ctx context.Context, uuid string) Result {
	return c.run(ctx, request{UUID: uuid})
}

// Overwrite has a child overwrite the memory of a GPU.
func (c *Children) Overwrite(ctx context.Context, uuid string) Result {
	return c.run(ctx, request{UUID: uuid, Overwrite: true})
}

func (c *Children) run(ctx context.Context, what request) Result {
	if c.hangs(what.UUID) {
		return Result{State: Failed, Detail: "an earlier process that works on its memory still hangs in the driver"}
	}
	child, said, err := c.start(what)
	if err != nil {
		return Result{State: Skipped, Detail: "it could not be begun: " + err.Error()}
	}
	ended := make(chan ending, 1)
	go func() { ended <- ending{child.Wait()} }()
	limit := c.Within
	if limit == 0 {
		limit = within
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case end := <-ended:
		return read(said.Bytes(), end.err)
	case <-timer.C:
		c.abandon(what.UUID, child, ended)
		return Result{State: Failed, Detail: fmt.Sprintf("the driver did not come to an end within %s", limit)}
	case <-ctx.Done():
		c.abandon(what.UUID, child, ended)
		return Result{State: Skipped, Detail: "it was broken off"}
	}
}

// ending is how a child ended.
type ending struct{ err error }

// start starts a child that sees one GPU, without this process's environment, which may hold secrets.
func (c *Children) start(what request) (*exec.Cmd, *bytes.Buffer, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return nil, nil, err
	}
	child := exec.Command(c.Command[0], c.Command[1:]...) //nolint:gosec,noctx // our own program, left alone at last
	child.Env = append(gpu.DriverEnvironment(), "CUDA_VISIBLE_DEVICES="+what.UUID, "CUDA_CACHE_DISABLE=1",
		"CUDA_MODULE_LOADING=EAGER") // no memory is left to load anything later
	said := &bytes.Buffer{}
	child.Stdin, child.Stdout = bytes.NewReader(text), said
	return child, said, child.Start()
}

// abandon asks a child to end, and leaves it alone: while it is in the driver it does not hear that, and to kill a
// process there has frozen GPUs.
func (c *Children) abandon(uuid string, child *exec.Cmd, ended <-chan ending) {
	_ = child.Process.Signal(syscall.SIGTERM)
	c.count(uuid, 1)
	go func() {
		<-ended
		c.count(uuid, -1)
	}()
}

func (c *Children) count(uuid string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		c.hung = map[string]int{}
	}
	if c.hung[uuid] += n; c.hung[uuid] == 0 {
		delete(c.hung, uuid)
	}
}

func (c *Children) hangs(uuid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hung[uuid] > 0
}

// read reads what a child said that has ended. One that ended without a word was ended by the driver's library.
func read(said []byte, ended error) Result {
	var r Result
	if err := json.Unmarshal(said[:min(len(said), mostSaid)], &r); err != nil {
		return Result{State: Failed, Detail: fmt.Sprintf("the process that used the driver ended early (%v)",
			errors.Join(ended, err))}
	}
	r.Detail = strings.ToValidUTF8(r.Detail, "")
	return r
}
