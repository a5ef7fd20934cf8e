package admission

import (
	"slices"

	"github.com/forewarm/forewarm/core/priority"
)

// Judge decides the request on the facts alone.
func Judge(r Request, f Facts) Decision {
	d := Decision{Window: f.Window, Cost: f.Cost, Reasons: listRefusals(&r, &f)}
	if !d.Accepted() {
		for i := range f.Probes {
			if o, ok := offerOf(&f.Probes[i]); ok {
				d.Offers = append(d.Offers, o)
			}
		}
		return d
	}
	d.Slots, d.Moves, d.Displaced = f.Room.Slots, f.Room.Moves, listDisplacements(f.Room.Candidates)
	return d
}

// listRefusals lists every blocker.
func listRefusals(r *Request, f *Facts) []Reason {
	reasons := listBlockers(r, f)
	if !f.Room.Found && f.Window.Valid() && f.Pool.everHolds(r.Shape) { // or else it was refused for that
		reasons = append(reasons, noCapacity(r, f))
	}
	return reasons
}

// offerOf turns what was looked at into an offer, if it would be accepted
// without moving anybody or pushing anybody out.
func offerOf(p *Probe) (Offer, bool) {
	if len(listRefusals(&p.Request, &p.Facts)) > 0 || len(p.Facts.Room.Candidates)+len(p.Facts.Room.Moves) > 0 {
		return Offer{}, false
	}
	return Offer{Pool: p.Facts.Pool.ID, Shape: p.Request.Shape, Window: p.Facts.Window, Cost: p.Facts.Cost}, true
}

// listDisplacements lists those that give way, in the order in which they do.
func listDisplacements(candidates []Candidate) []Displacement {
	var gone []Displacement
	for _, c := range candidates {
		if c.Gives {
			gone = append(gone, Displacement{ID: c.ID, Offer: c.Offer})
		}
	}
	return gone
}

// sortYielding sorts speculative bookings, the first to give way first.
func sortYielding(bookings []Speculative) {
	slices.SortFunc(bookings, func(a, b Speculative) int {
		return priority.YieldByShare(bookingClaimant(&a), bookingClaimant(&b))
	})
}

func bookingClaimant(s *Speculative) priority.Claimant {
	return priority.Claimant{ID: s.ID, Speculative: true, Share: s.Share, Probability: s.Probability}
}
