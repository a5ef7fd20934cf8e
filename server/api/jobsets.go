package api

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

// One request about a set of jobs does no more than this, and tells how to go on: its answer has to come in time.
const (
	mostParts    = 10 // transactions of at most ledger.MostJobsAtOnce jobs
	partsBeginIn = 4 * time.Second
)

// serveJobSet serves a verb on a set of jobs. Each part of its work is one transaction, with an idempotency key of its
// own: a request that is sent again finds what its first copy has done, and goes on.
func serveJobSet(a *API, name, summary string, verb func(*verbs.Ledger, context.Context, ledger.Actor, ledger.JobSet) (
	ledger.JobsChanged, error)) endpoint {
	return serveSet(a, name, summary, func(b *contract.JobSet) *contract.JobSet { return b },
		func(l *verbs.Ledger, ctx context.Context, actor ledger.Actor, s ledger.JobSet, _ contract.JobSet) (
			ledger.JobsChanged, error) {
			return verb(l, ctx, actor, s)
		})
}

// changeSet is a verb on the next jobs of a set, with what its body says of it.
type changeSet[B any] = operation.Change[B, ledger.JobsChanged, contract.JobsChanged]

// serveSet serves a verb on the set that is in its body.
func serveSet[B any](a *API, name, summary string, setOf func(*B) *contract.JobSet, verb func(*verbs.Ledger,
	context.Context, ledger.Actor, ledger.JobSet, B) (ledger.JobsChanged, error)) endpoint {
	c := changeSet[B]{
		Operation: operation.Operation{ID: name + "Jobs", Method: http.MethodPost, Path: "/jobs/" + name, Tag: "jobs",
			Policy: auth.Member, Summary: summary},
		Check: func(ctx context.Context, _ operation.Viewer, b *B) (err error) {
			said := setOf(b)
			set, err := decodeJobSet(*said)
			if err == nil {
				err = set.Check()
			}
			if err == nil {
				said.Pool, err = a.resolveField(ctx, ledger.NounPool, "pool", said.Pool)
			}
			return err
		},
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b B) (ledger.JobsChanged, error) {
			set, err := decodeJobSet(*setOf(&b))
			if err != nil {
				return ledger.JobsChanged{}, err
			}
			return verb(l, ctx, actor, set, b)
		},
		Encode: forAnybody(encodeJobsChanged),
	}
	return serve(a, c.Operation, func(ctx context.Context, a *API, in *create[B]) (*Created[contract.JobsChanged], error) {
		got, err := changeParts(ctx, a, c, in, setOf)
		if err != nil {
			return nil, err
		}
		return &Created[contract.JobsChanged]{Status: got.Status, Body: got.Body,
			Replayed: formatReplayed(got.Replayed)}, nil
	})
}

// changeParts changes part after part of a set. After a failure the answer is what was done before it: who goes on
// hears of it, if it lasts.
func changeParts[B any](ctx context.Context, a *API, c changeSet[B], in *create[B], setOf func(*B) *contract.JobSet) (
	all operation.Answer[contract.JobsChanged], err error) {
	soon, cancel := context.WithTimeout(ctx, partsBeginIn)
	defer cancel()
	if all, _, err = changeOnce(ctx, a, c, in.Idempotency, in.Body); err != nil {
		return all, err
	}
	next := in.Body
	for part := 1; all.Body.NextCursor != "" && part < mostParts && soon.Err() == nil; part++ {
		key := in.Idempotency
		setOf(&next).Cursor = all.Body.NextCursor
		if key.Key != "" {
			key.Key += "+" + all.Body.NextCursor
		}
		got, _, err := changeOnce(ctx, a, c, key, next)
		if err != nil {
			a.Log.WarnContext(ctx, "a set of jobs was changed in part, and whoever asked for it is told how to go on",
				"operation", c.ID, "error", err)
			break
		}
		all.Replayed = all.Replayed && got.Replayed
		all.Body = addJobsChanged(all.Body, got.Body)
	}
	return all, nil
}

// addJobsChanged is what became of two parts of a set.
func addJobsChanged(x, y contract.JobsChanged) contract.JobsChanged {
	y.Changed, y.Unchanged, y.Refused = x.Changed+y.Changed, x.Unchanged+y.Unchanged, x.Refused+y.Refused
	y.Refusals = append(x.Refusals, y.Refusals...)
	y.Refusals = y.Refusals[:min(len(y.Refusals), ledger.MostRefusedJobs)]
	return y
}

// decodeJobSet reads a set whose pool has its id.
func decodeJobSet(b contract.JobSet) (ledger.JobSet, error) {
	after, err := parseCursor("job", b.Cursor)
	return ledger.JobSet{ArrayID: b.ArrayID, Mine: b.Mine, PoolID: b.Pool, State: b.States, After: after}, err
}

func encodeJobsChanged(got ledger.JobsChanged) contract.JobsChanged {
	out := contract.JobsChanged{Changed: got.Changed, Unchanged: got.Unchanged, Refused: got.Refused,
		Refusals: make([]contract.JobRefusal, 0, len(got.Refusals))}
	for _, r := range got.Refusals {
		p, _ := problem.From(r.Err)
		out.Refusals = append(out.Refusals, contract.JobRefusal{ID: r.ID, Status: p.Status, Code: p.Code,
			Message: p.Detail})
	}
	if got.Next != "" {
		out.NextCursor = formatCursor("job", got.Next)
	}
	return out
}
