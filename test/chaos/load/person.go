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
	tide  tide
	desk  desk
	name  string
	pools []string
	count int
}

func (p *person) live(ctx context.Context) {
	for p.tide.flood(ctx) {
		p.count++
		name := fmt.Sprintf("%s-%d", p.name, p.count)
		switch n := p.chance.IntN(20); {
		case n < 9:
			p.allocate(ctx, name)
		case n < 18:
			p.reserve(ctx, name)
		default:
			p.batch(ctx, name)
		}
		p.pause(ctx, 2*time.Second)
	}
}

func (p *person) pause(ctx context.Context, most time.Duration) {
	wait(ctx, time.Duration(p.chance.Int64N(int64(most))))
}

func (p *person) pool() string { return p.pools[p.chance.IntN(len(p.pools))] }

// gpus is usually a part of a node, now and then two nodes.
func (p *person) gpus() int { return []int{1, 1, 1, 2, 2, 4}[p.chance.IntN(6)] }

func (p *person) allocate(ctx context.Context, name string) {
	in := contract.AllocationCreate{Pool: p.pool(), GPUs: p.gpus(), LeaseSeconds: int64(3 + p.chance.IntN(20)),
		Name: name}
	a, ok := ask(ctx, p.caller, request[contract.Allocation]{Allocate, name,
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Allocate(ctx, in, client.Options{})
		}, allocationID})
	if !ok {
		return
	}
	p.acknowledged(Entry{Op: Allocate, ID: a.ID, Name: name, Devices: uuids(a)})
	p.use(ctx, a.ID, name)
}

// use holds what was allocated for a while. Now and then it is left to the end
// of its lease.
func (p *person) use(ctx context.Context, id, name string) {
	p.pause(ctx, 3*time.Second)
	for i := range p.chance.IntN(3) {
		p.journal.extending(id)
		_, ok := ask(ctx, p.caller, request[contract.Allocation]{
			Extend, fmt.Sprintf("%s-extend-%d", name, i),
			func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
				return c.Extend(ctx, id, time.Second, client.Options{})
			},
			func(a contract.Allocation) string { return a.LeaseUntil.Format(time.RFC3339Nano) },
		})
		if ok {
			p.acknowledged(Entry{Op: Extend, ID: id})
		}
	}
	if p.chance.IntN(6) > 0 {
		p.release(ctx, id, name)
	}
}

func (p *person) release(ctx context.Context, id, name string) {
	_, ok := ask(ctx, p.caller, request[contract.Allocation]{Release, name + "-release",
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Release(ctx, id)
		}, allocationID})
	if ok {
		p.acknowledged(Entry{Op: Release, ID: id})
	}
}

func (p *person) reserve(ctx context.Context, name string) {
	start := time.Now().UTC().Add(time.Duration(2+p.chance.IntN(12)) * time.Second)
	in := contract.ReservationCreate{
		Pool: p.pool(), GPUs: p.gpus(), Start: start, End: start.Add(time.Duration(4+p.chance.IntN(15)) * time.Second),
		Name: name,
	}
	v, ok := ask(ctx, p.caller, request[contract.Reservation]{Reserve, name,
		func(ctx context.Context, c *client.Client) (contract.Reservation, error) {
			return c.Reserve(ctx, in, client.Options{})
		}, reservationID})
	if !ok {
		return
	}
	p.acknowledged(Entry{Op: Reserve, ID: v.ID, Name: name})
	p.pause(ctx, 6*time.Second)
	switch p.chance.IntN(4) {
	case 0:
		p.cancel(ctx, v.ID, name)
	case 1, 2:
		p.claim(ctx, v.ID, name+"-claim")
	}
}

func (p *person) cancel(ctx context.Context, id, name string) {
	_, ok := ask(ctx, p.caller, request[contract.Reservation]{Cancel, name + "-cancel",
		func(ctx context.Context, c *client.Client) (contract.Reservation, error) {
			return c.CancelReservation(ctx, id)
		}, reservationID})
	if ok {
		p.acknowledged(Entry{Op: Cancel, ID: id})
	}
}

func (p *person) claim(ctx context.Context, id, name string) {
	in := contract.Claim{LeaseSeconds: int64(3 + p.chance.IntN(10)), Name: name}
	a, ok := ask(ctx, p.caller, request[contract.Allocation]{Claim, name,
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Claim(ctx, id, in, client.Options{})
		}, allocationID})
	if !ok {
		return
	}
	p.acknowledged(Entry{Op: Claim, ID: a.ID, Name: name, Reservation: id, Devices: uuids(a)})
	p.use(ctx, a.ID, name)
}

func (p *person) acknowledged(e Entry) {
	e.Organization = p.org
	p.journal.acknowledged(e)
}

func allocationID(a contract.Allocation) string   { return a.ID }
func reservationID(r contract.Reservation) string { return r.ID }

func uuids(a contract.Allocation) []string {
	var all []string
	for _, d := range a.Devices {
		all = append(all, d.UUID)
	}
	return all
}
