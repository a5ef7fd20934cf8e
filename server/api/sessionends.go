package api

import (
	"context"
	"errors"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
)

// watchSession looks every second whether the session may go on: while the allocation is
// active, its lease lasts by the database's clock, and the key that opened it may enter.
// While the database does not answer, the lease that was known last counts.
func (a *API) watchSession(ctx context.Context, s seated) <-chan session.End {
	ends := make(chan session.End, 1)
	go func() {
		tick := time.NewTicker(checkEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.Sessions.Leaving():
				ends <- session.End{Code: session.NodeLost, Reason: "the control plane was stopped"}
				return
			case <-tick.C:
			}
			if end, over := a.checkSession(ctx, &s); over {
				ends <- end
				return
			}
		}
	}()
	return ends
}

// judgeEnd is how a session ended of which the node says that its command failed: the node may have ended it with the
// allocation, before this server saw that.
func judgeEnd(ctx context.Context, a *API, s seated, said session.End) session.End {
	if said.Code == "" && said.ExitCode == 0 {
		return said
	}
	if end, over := a.checkSession(ctx, &s); over && end.Code == session.LeaseOver {
		return end
	}
	return said
}

// checkSession says how a session has to end, if it has to.
func (a *API) checkSession(ctx context.Context, s *seated) (session.End, bool) {
	over := session.End{Code: session.LeaseOver, Reason: session.WhyOver(s.allocationID, "", "")}
	actor, _, err := a.Auth.Watch(ctx, s.keyID)
	if errors.Is(err, ledger.ErrNotFound) {
		return session.End{Code: session.Refused, Reason: "the key that opened the session is not valid any more"}, true
	}
	if err == nil {
		var entered error
		var got allocation.Allocation
		err = a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
			if got, err = r.Allocation(ledger.Scope{All: true}, s.allocationID); err != nil {
				return err
			}
			if entered = enterable(actor, got); entered == nil {
				s.until = a.Clock.Now().Add(got.LeaseUntil.Sub(r.Now()))
			}
			return nil
		})
		if err == nil && errors.Is(entered, ledger.ErrDenied) {
			return session.End{Code: session.Refused, Reason: "the key that opened the session may not enter any more"}, true
		}
		if err == nil && entered != nil {
			over.Reason = session.WhyOver(got.ID, string(got.State()), releasedBy(ctx, a, actor, got))
			return over, true
		}
	}
	return over, !a.Clock.Now().Before(s.until)
}

// releasedBy is the name of who released an allocation; empty: nobody has, or the actor may not see it.
func releasedBy(ctx context.Context, a *API, actor ledger.Actor, got allocation.Allocation) string {
	var by contract.Event
	if got.State() != allocation.Released {
		return ""
	}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		found, err := r.Events(actor.Scope(), ledger.EventFilter{Subject: got.ID,
			Type: "allocation." + string(allocation.Released)}, 1)
		if len(found) > 0 {
			by.Actor = found[0].Actor
		}
		return err
	})
	if err == nil {
		err = a.fillNames(ctx, actor.Scope(), &by)
	}
	if err != nil { // the session ends either way
		a.Log.WarnContext(ctx, "who released an allocation is not known", "allocation", got.ID, "error", err)
	}
	return by.ActorName
}
