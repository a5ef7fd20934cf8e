package txn

import (
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/learned"
)

// Rooms are the GPUs that jobs leave for others.
func (p *PoolTx) Rooms() []learned.Room { return p.Pool.Rooms }

// RoomFor returns what others leave for a job, if they do.
func (p *PoolTx) RoomFor(jobID string) (learned.Room, bool) {
	i := slices.IndexFunc(p.Pool.Rooms, func(r learned.Room) bool { return r.For == jobID })
	if i < 0 {
		return learned.Room{}, false
	}
	return p.Pool.Rooms[i], true
}

// PutRoom keeps GPUs for a job that others leave for it.
func (p *PoolTx) PutRoom(r learned.Room) { p.setRooms(append(slices.Clip(p.Pool.Rooms), r)) }

// DropRoom lets everybody have what others left for a job. Without any it changes nothing.
func (p *PoolTx) DropRoom(jobID string) {
	if _, ok := p.RoomFor(jobID); ok {
		p.setRooms(slices.DeleteFunc(slices.Clone(p.Pool.Rooms), func(r learned.Room) bool { return r.For == jobID }))
		p.Tx.WakePlan(p.Pool.ID)
	}
}

func (p *PoolTx) setRooms(all []learned.Room) {
	before := p.placed
	p.Tx.undos = append(p.Tx.undos, func() { p.placeRooms(before) })
	p.placeRooms(all)
	next := p.Pool.Learned
	next.Rooms = all
	p.setLearned(next)
}

// OpenRoom has a job judged as if its room were free, until the caller calls back.
func (p *PoolTx) OpenRoom(jobID string) (back func()) {
	r, ok := p.RoomFor(jobID)
	if !ok {
		return func() {}
	}
	p.Places.Remove(r.Booking().ID)
	return func() {
		if _, still := p.RoomFor(jobID); still {
			p.Places.Force(r.Booking())
		}
	}
}

// placeRooms replaces the rooms in the calendar.
func (d *cachedPool) placeRooms(all []learned.Room) {
	for _, r := range d.placed {
		d.Places.Remove(r.Booking().ID)
	}
	d.placed = all
	for _, r := range all {
		d.Places.Force(r.Booking())
	}
}

// leaveRoom drops what others left for a job that does not wait for it any more.
func leaveRoom(tx *Tx, j job.Job) {
	if j.State() == job.Pending {
		return
	}
	for _, p := range tx.Pools {
		if p.Pool.ID == j.PoolID {
			p.DropRoom(j.ID)
		}
	}
}
