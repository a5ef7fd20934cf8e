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
	Log  string // the file in which visitors write down what they see; all users of this machine may write to it
	Mark string // what the names of marks begin with
}

// visitor runs commands on the nodes of its allocations.
type visitor struct {
	*caller
	Visits
	sessions []session.Server // one for each server
	name     string
	count    int // of visits
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

func (v *visitor) drawStay() stay {
	s := stay{quarters: 2 + v.chance.IntN(10), manner: "willing"}
	if v.chance.IntN(6) == 0 {
		s.manner = "stubborn"
	}
	return s
}

// visitNode runs the script on a node of an allocation once.
func (v *visitor) visitNode(ctx context.Context, allocationID string, node int, s stay) error {
	v.count++
	v.at++
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.quarters)*time.Second/4+slackOfVisit)
	defer cancel()
	visit := fmt.Sprintf("%s-%d", v.name, v.count)
	end, err := v.sessions[v.at%len(v.sessions)].Run(ctx, allocationID, session.Command{Node: node,
		Command: wire.Command{Arguments: []string{"bash", "-c", script, "bash", visit, v.org, v.Log,
			strconv.Itoa(s.quarters), v.Mark, s.manner}}})
	if err == nil && end.ExitCode != 0 {
		err = fmt.Errorf("visit %s ended with exit code %d", visit, end.ExitCode)
	}
	v.journal.countVisit(err)
	return err
}

// isOver reports whether an allocation cannot be entered any more.
func isOver(err error) bool {
	problem, refused := errors.AsType[*client.Error](err)
	end, ended := errors.AsType[*session.EndError](err)
	return refused && (problem.Problem.Code == contract.CodeStateConflict ||
		problem.Problem.Code == contract.CodeNotFound) || ended && end.Code == wire.LeaseOver
}
