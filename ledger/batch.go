package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/core/reservation"
)

// MaxBatch is the most requests one batch may hold.
const MaxBatch = 10_000

// BatchItem is one request of a batch. One that is Invalid already is not tried.
type BatchItem struct {
	Request ReserveRequest
	Invalid error
}

// Outcome is what became of one request of a batch: a reservation, or why there
// is none (*InvalidError, *RefusedError, or what BatchItem said).
type Outcome struct {
	Reservation reservation.Reservation
	Err         error
}

// ReserveMany books a batch in one transaction, in the given order, each request
// deciding on what the ones before it left. One that is refused does not stop the
// others; when the transaction fails, none of them is there.
func (l *Ledger) ReserveMany(ctx context.Context, actor Actor, batch []BatchItem) ([]Outcome, error) {
	if len(batch) == 0 || len(batch) > MaxBatch {
		return nil, &InvalidError{Field: "items", Rule: fmt.Sprintf("must be between 1 and %d", MaxBatch)}
	}
	var outcomes []Outcome
	err := l.share(ctx, actor, batchUses(batch), func(u *unit) error {
		h, err := u.holding()
		if err != nil {
			return err
		}
		outcomes = make([]Outcome, len(batch))
		for i, item := range batch {
			outcomes[i], err = u.reserveOne(h, item)
			if err != nil {
				return fmt.Errorf("booking item %d: %w", i, err)
			}
		}
		return nil
	})
	return outcomes, err
}

// batchUses names the one pool of a batch, if it has one.
func batchUses(batch []BatchItem) *Uses {
	for _, item := range batch {
		if item.Request.Pool != batch[0].Request.Pool {
			return nil
		}
	}
	return batch[0].Request.uses()
}

// reserveOne books one of a batch. The error is a fault, not a refusal.
func (u *unit) reserveOne(h *holding, item BatchItem) (Outcome, error) {
	req := item.Request
	if item.Invalid != nil {
		return Outcome{Err: item.Invalid}, nil
	}
	if err := req.check(); err != nil {
		return Outcome{Err: err}, nil
	}
	pools, err := u.candidates(req.Pool, req.Model)
	if err == nil {
		var r reservation.Reservation
		if r, err = u.reserveFirst(pools, h, req); err == nil {
			return Outcome{Reservation: r}, nil
		}
	}
	refused, invalid := (*RefusedError)(nil), (*InvalidError)(nil)
	if errors.As(err, &refused) || errors.As(err, &invalid) {
		u.leave(err)
		return Outcome{Err: err}, nil
	}
	return Outcome{}, err
}
