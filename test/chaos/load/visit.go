package load

import (
	"context"
	_ "embed" // the script of a visit
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
	wire "github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/core/allocation"
)

// script is what a visitor of a node runs there.
//
//go:embed visit.sh
var script string

// slackOfVisit is how long a visit may take beside what it is to last.
const slackOfVisit = 15 * time.Second

// Visits is where and how holders of GPUs visit the nodes that have daemons.
type Visits struct {
	Pool string
	// Shared is a pool whose GPUs several have at once.
	Shared string
	Log    string // the file in which visitors write down what they see: all users may write to it
	Runs   string // and the one in which jobs do that they ran
	Mark   string // what the names of marks begin with
}

// visitor runs commands on the nodes of its allocations.
type visitor struct {
	*caller
	Visits
	sessions []session.Server // one for each server
	name     string
	count    int // of visits, each of which goes to the next server
}

func (l *Load) newVisitor(c *caller, name string) *visitor {
	v := &visitor{caller: c, Visits: l.visits, name: name}
	for _, api := range c.servers {
		v.sessions = append(v.sessions, session.Server{API: api, HTTP: &http.Client{Transport: l.streams}})
	}
	return v
}

// stay is how long a visit lasts, in quarters of a second, and in which manner.
type stay struct {
	quarters int
	manner   string
}

// drawPool is where a holder goes: one in three shares GPUs with others.
func (v *visitor) drawPool() string {
	if v.chance.IntN(3) == 0 {
		return v.Shared
	}
	return v.Pool
}

func (v *visitor) drawStay() stay {
	s := stay{quarters: 2 + v.chance.IntN(10), manner: "willing"}
	if v.chance.IntN(6) == 0 {
		s.manner = "stubborn"
	}
	return s
}

// visitNode runs the script on the first node of an allocation once.
func (v *visitor) visitNode(ctx context.Context, allocationID string, s stay) error {
	v.count++
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.quarters)*time.Second/4+slackOfVisit)
	defer cancel()
	visit := fmt.Sprintf("%s-%d", v.name, v.count)
	end, err := v.visitedServer().Run(ctx, allocationID, session.Command{
		Command: wire.Command{Arguments: []string{"bash", "-c", script, "bash", visit, v.org, v.Log,
			strconv.Itoa(s.quarters), v.Mark, s.manner}}})
	if err == nil && end.ExitCode != 0 {
		err = fmt.Errorf("visit %s ended with exit code %d", visit, end.ExitCode)
	}
	v.journal.countVisit(howEnded(err))
	return err
}

// allocate asks for GPUs until it is answered.
func (v *visitor) allocate(ctx context.Context, in contract.AllocationCreate) (contract.Allocation, bool) {
	a, ok := askUntilAnswered(ctx, v.caller, request[contract.Allocation]{Allocate, in.Name,
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Allocate(ctx, in, client.Options{})
		}, allocationID})
	if ok {
		v.recordEffect(Entry{Op: Allocate, ID: a.ID, Name: in.Name, Devices: deviceIDs(a)})
	}
	return a, ok
}

func (v *visitor) release(ctx context.Context, id, name string) {
	_, ok := askUntilAnswered(ctx, v.caller, request[contract.Allocation]{Release, name + "-release",
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Release(ctx, id)
		}, allocationID})
	if ok {
		v.recordEffect(Entry{Op: Release, ID: id})
	}
}

// visitAll visits the first node of an allocation, again after what failed, until all stays
// are over, or the allocation.
func (v *visitor) visitAll(ctx context.Context, allocationID string, stays []stay) {
	for len(stays) > 0 && ctx.Err() == nil {
		err := v.visitNode(ctx, allocationID, stays[0])
		switch {
		case err == nil:
			stays = stays[1:]
		case v.isOver(ctx, allocationID):
			return
		}
		waitFor(ctx, 200*time.Millisecond)
	}
}

// whole is how a visit ends that nothing has broken.
const whole = "whole"

// howEnded names how a visit ended.
func howEnded(err error) string {
	problem, refused := errors.AsType[*client.Error](err)
	end, ended := errors.AsType[*session.EndError](err)
	switch {
	case err == nil:
		return whole
	case refused:
		return problem.Problem.Code
	case ended:
		return end.Code
	case errors.Is(err, session.ErrCut):
		return "cut"
	case errors.Is(err, context.DeadlineExceeded):
		return "late"
	default:
		return "broken"
	}
}

// visitedServer is the one that the visit at hand goes to. The caller's own requests may go
// elsewhere at the same time.
func (v *visitor) visitedServer() session.Server { return v.sessions[v.count%len(v.sessions)] }

// isOver reports whether an allocation is known to have ended.
func (v *visitor) isOver(ctx context.Context, allocationID string) bool {
	a, err := v.visitedServer().API.Allocation(ctx, allocationID)
	return err == nil && a.State != string(allocation.Pending) && a.State != string(allocation.Active)
}
