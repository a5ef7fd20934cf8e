package hold

import (
	"context"
	"slices"

	"github.com/forewarm/forewarm/contract"
)

// scrub begins to clean the GPUs of a hold on which a look has found nothing any more, and reports whether it has: the
// hold ends with a look after that. GPUs that others may have at the same time stay as they are, since to take all
// memory that is free would end work there.
func (k *Keeper) scrub(id string, r *record, look contract.NodeLook) bool {
	if k.Cleaner == nil || r.Scrubbed || r.SharesGPUs {
		return false
	}
	var here []string
	for _, g := range look.GPUs {
		if slices.Contains(r.GPUs, g.UUID) {
			here = append(here, g.UUID)
		}
	}
	if len(here) == 0 {
		return false
	}
	if look.Source == "simulated" { // nothing takes time
		said, _ := k.Cleaner.Clean(context.Background(), here)
		r.Proof, r.Scrubbed = clip(r.Proof+"; "+said), true
		return false
	}
	k.scrubs[id] = here
	k.work.Go(func() {
		said, err := k.Cleaner.Clean(context.Background(), here)
		k.scrubbed(id, said, err)
	})
	return true
}

// scrubbed notes what came of cleaning the GPUs of a hold.
func (k *Keeper) scrubbed(id, said string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.scrubs, id)
	kept := k.book.Holds[id]
	if kept == nil || kept.Phase != cleared {
		return
	}
	kept.Cleared, kept.Scrubbed = k.Clock.Now(), err == nil
	if kept.Proof = clip(kept.Proof + "; " + said); err != nil {
		kept.Phase, kept.Problem = ended, clip(err.Error())
	}
	k.save()
	k.tell()
}
