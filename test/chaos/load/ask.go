package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// patience is how long a request is sent again and again before its sender gives
// up: longer than any fault.
const patience = 2 * time.Minute

// one in so many requests is sent to all servers at once, and one in so many is
// sent once more after it was answered.
const twins, echoes = 8, 8

// caller is somebody with a key, who knows every server.
type caller struct {
	journal *Journal
	org     string
	servers []*client.Client
	chance  *rand.Rand
	at      int // the server that is asked first
}

// request is something to ask, with one idempotency key however often it is
// sent. id is what two answers to it must have in common.
type request[T any] struct {
	op   Op
	key  string
	send func(context.Context, *client.Client) (T, error)
	id   func(T) string
}

// askUntilAnswered sends a request until it is answered, to one server after the other. It is
// not ended by ctx: what was asked is answered before the world is judged. False
// means that it was refused, or never answered.
func askUntilAnswered[T any](ctx context.Context, c *caller, r request[T]) (T, bool) {
	call := client.WithIdempotencyKey(context.WithoutCancel(ctx), r.key)
	var told []string
	if c.chance.IntN(twins) == 0 {
		told = askAllServers(call, c, r)
	}
	for limit := time.Now().Add(patience); ; {
		out, err := r.send(call, c.currentServer())
		var problem *client.Error
		switch {
		case err == nil:
			c.journal.countAnswer(r.op)
			told = append(told, r.id(out))
			if c.chance.IntN(echoes) == 0 {
				told = append(told, repeatRequest(call, c, r))
			}
			c.compareEffects(r.key, told)
			return out, true
		case errors.As(err, &problem) && isFinal(problem):
			c.journal.countAnswer(r.op)
			c.recordProblem(r.op, problem)
			return out, false
		case time.Now().After(limit):
			c.journal.countUnanswered()
			return out, false
		}
		c.at++
		waitFor(call, time.Duration(100+c.chance.IntN(200))*time.Millisecond)
	}
}

func (c *caller) currentServer() *client.Client { return c.servers[c.at%len(c.servers)] }

// askAllServers sends the request to all servers at the same moment, and returns what
// those that answer speak of.
func askAllServers[T any](call context.Context, c *caller, r request[T]) []string {
	ids := make([]string, len(c.servers))
	var sent sync.WaitGroup
	for i, server := range c.servers {
		sent.Go(func() {
			if out, err := r.send(call, server); err == nil {
				ids[i] = r.id(out)
			}
		})
	}
	sent.Wait()
	return ids
}

// repeatRequest sends an answered request once more, to the next server; empty when that
// does not answer.
func repeatRequest[T any](call context.Context, c *caller, r request[T]) string {
	out, err := r.send(call, c.servers[(c.at+1)%len(c.servers)])
	if err != nil {
		return ""
	}
	return r.id(out)
}

// compareEffects notes when answers to one request speak of different effects. An
// empty one is of who did not answer.
func (c *caller) compareEffects(key string, ids []string) {
	ids = slices.Compact(slices.DeleteFunc(ids, func(id string) bool { return id == "" }))
	if len(ids) > 1 {
		c.journal.recordDoubled(fmt.Sprintf("the idempotency key %s was answered with %q", key, ids))
	}
}

// isFinal reports whether asking again would bring nothing else.
func isFinal(e *client.Error) bool {
	return e.Problem.Status < http.StatusInternalServerError && e.Problem.Status != http.StatusTooManyRequests
}

// explained are the refusals that this load can cause.
var explained = []string{
	contract.CodeCapacityExhausted, contract.CodeStateConflict, contract.CodeQuotaExceeded, contract.CodeBudgetExceeded,
	contract.CodeSpendingExceeded, contract.CodeKeyCapExceeded, contract.CodeWindowInPast,
	contract.CodeLeadTimeTooShort,
	contract.CodeClaimTooEarly, contract.CodeClaimTooLong,
}

func (c *caller) recordProblem(op Op, e *client.Error) {
	overtaken := op == Plan &&
		e.Problem.Code == contract.CodeValidationFailed // its windows passed while nobody answered
	if !overtaken && !slices.Contains(explained, e.Problem.Code) {
		c.journal.recordStrange(fmt.Sprintf("%s was answered %d %s: %s", op, e.Problem.Status, e.Problem.Code,
			e.Error()))
	}
}

func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
