package load

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// person books, uses and gives back, one thing after the other.
type person struct {
	*caller
	tide    tide
	batches batchClient
	name    string
	pools   []string
	count   int
}

func (p *person) runPerson(ctx context.Context) {
	for p.tide.awaitFlood(ctx) {
		p.count++
		name := fmt.Sprintf("%s-%d", p.name, p.count)
		switch n := p.chance.IntN(20); {
		case n < 9:
			p.allocateGPUs(ctx, name)
		case n < 18:
			p.reserveGPUs(ctx, name)
		default:
			p.bookBatch(ctx, name)
		}
		p.pauseUpTo(ctx, 2*time.Second)
	}
}

func (p *person) pauseUpTo(ctx context.Context, most time.Duration) {
	waitFor(ctx, time.Duration(p.chance.Int64N(int64(most))))
}

func (p *person) drawPool() string { return p.pools[p.chance.IntN(len(p.pools))] }

// drawGPUs is usually a part of a node, now and then two nodes.
func (p *person) drawGPUs() int { return []int{1, 1, 1, 2, 2, 4}[p.chance.IntN(6)] }

func (p *person) allocateGPUs(ctx context.Context, name string) {
	in := contract.AllocationCreate{Pool: p.drawPool(), GPUs: p.drawGPUs(), LeaseSeconds: int64(3 + p.chance.IntN(20)),
		Name: name}
	a, ok := askUntilAnswered(ctx, p.caller, request[contract.Allocation]{Allocate, name,
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Allocate(ctx, in, client.Options{})
		}, allocationID})
	if !ok {
		return
	}
	p.recordEffect(Entry{Op: Allocate, ID: a.ID, Name: name, Devices: deviceIDs(a)})
	p.useAllocation(ctx, a.ID, name)
}

// useAllocation holds what was allocated for a while. Now and then it is left to the end
// of its lease.
func (p *person) useAllocation(ctx context.Context, id, name string) {
	p.pauseUpTo(ctx, 3*time.Second)
	for i := range p.chance.IntN(3) {
		p.journal.countExtension(id)
		_, ok := askUntilAnswered(ctx, p.caller, request[contract.Allocation]{
			Extend, fmt.Sprintf("%s-extend-%d", name, i),
			func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
				return c.Extend(ctx, id, time.Second, client.Options{})
			},
			func(a contract.Allocation) string { return a.LeaseUntil.Format(time.RFC3339Nano) },
		})
		if ok {
			p.recordEffect(Entry{Op: Extend, ID: id})
		}
	}
	if p.chance.IntN(6) > 0 {
		p.releaseAllocation(ctx, id, name)
	}
}

func (p *person) releaseAllocation(ctx context.Context, id, name string) {
	_, ok := askUntilAnswered(ctx, p.caller, request[contract.Allocation]{Release, name + "-release",
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Release(ctx, id)
		}, allocationID})
	if ok {
		p.recordEffect(Entry{Op: Release, ID: id})
	}
}

func (p *person) reserveGPUs(ctx context.Context, name string) {
	start := time.Now().UTC().Add(time.Duration(2+p.chance.IntN(12)) * time.Second)
	in := contract.ReservationCreate{
		Pool: p.drawPool(), GPUs: p.drawGPUs(), Start: start,
		End:  start.Add(time.Duration(4+p.chance.IntN(15)) * time.Second),
		Name: name,
	}
	v, ok := askUntilAnswered(ctx, p.caller, request[contract.Reservation]{Reserve, name,
		func(ctx context.Context, c *client.Client) (contract.Reservation, error) {
			return c.Reserve(ctx, in, client.Options{})
		}, reservationID})
	if !ok {
		return
	}
	p.recordEffect(Entry{Op: Reserve, ID: v.ID, Name: name})
	p.pauseUpTo(ctx, 6*time.Second)
	switch p.chance.IntN(4) {
	case 0:
		p.cancelReservation(ctx, v.ID, name)
	case 1, 2:
		p.claimReservation(ctx, v.ID, name+"-claim")
	}
}

func (p *person) cancelReservation(ctx context.Context, id, name string) {
	_, ok := askUntilAnswered(ctx, p.caller, request[contract.Reservation]{Cancel, name + "-cancel",
		func(ctx context.Context, c *client.Client) (contract.Reservation, error) {
			return c.CancelReservation(ctx, id)
		}, reservationID})
	if ok {
		p.recordEffect(Entry{Op: Cancel, ID: id})
	}
}

func (p *person) claimReservation(ctx context.Context, id, name string) {
	in := contract.Claim{LeaseSeconds: int64(3 + p.chance.IntN(10)), Name: name}
	a, ok := askUntilAnswered(ctx, p.caller, request[contract.Allocation]{Claim, name,
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Claim(ctx, id, in, client.Options{})
		}, allocationID})
	if !ok {
		return
	}
	p.recordEffect(Entry{Op: Claim, ID: a.ID, Name: name, Reservation: id, Devices: deviceIDs(a)})
	p.useAllocation(ctx, a.ID, name)
}

func (c *caller) recordEffect(e Entry) {
	e.Organization = c.org
	c.journal.recordEffect(e)
}

func allocationID(a contract.Allocation) string   { return a.ID }
func reservationID(r contract.Reservation) string { return r.ID }

func deviceIDs(a contract.Allocation) []string {
	var all []string
	for _, d := range a.Devices {
		all = append(all, d.UUID)
	}
	return all
}
