package api

import (
	"context"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

// mostCycle bounds the record of one answer. A job takes some 600 bytes of it.
const mostCycle = 24 << 20

// getCycle tells of everybody's jobs, so that it is for operators alone. Nothing of what it says is carried out.
func getCycle(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Cycle], error) {
	out := &One[contract.Cycle]{}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		record, err := a.Ledger.DecideNow(r, in.ID)
		if err != nil {
			return err
		}
		text, err := record.Encode()
		if err != nil {
			return err
		}
		if len(text) > mostCycle {
			return problem.Invalid("id", "must be a pool of whose queue a record has at most 24 MiB",
				"have the looks at it recorded to files: cycle_records in forewarm.yaml")
		}
		out.Body = contract.Cycle{PoolID: in.ID, PoolName: record.Pool, At: record.Now.UTC(), Record: text}
		return nil
	})
	return out, err
}
