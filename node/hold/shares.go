package hold

import "slices"

// Shares is what a hold has of GPUs that it may share with others. The zero value: it has them alone.
type Shares struct {
	Held   int // on this node
	PerGPU int // that a GPU has
}

// areParts reports whether others may be on the same GPUs.
func (s Shares) areParts() bool { return s.PerGPU > 1 }

// orWhole are the shares, or so many GPUs that are held alone.
func (s Shares) orWhole(gpus int) Shares {
	if s.areParts() {
		return s
	}
	return Shares{Held: gpus, PerGPU: 1}
}

// floorOf is how much memory of a GPU, in MiB, is in use while nobody holds it: as was seen at the last look, or before
// the first of those who share it now began.
func (b *book) floorOf(uuid string, seen map[string]int) (used int, known bool) {
	used, known = seen[uuid]
	for _, r := range b.Holds {
		if floor, ok := r.Floor[uuid]; ok && r.SharesGPUs && r.Phase != ended && (!known || floor < used) {
			used, known = floor, true
		}
	}
	return used, known
}

// othersOn is how many other holds have work on a GPU that a hold shares: what is seen there may be theirs.
func (b *book) othersOn(uuid string, r *record) int {
	if !r.SharesGPUs {
		return 0
	}
	others := 0
	for _, o := range b.Holds {
		if o != r && (o.Phase == open || o.Phase == ending) && slices.Contains(o.GPUs, uuid) {
			others++
		}
	}
	return others
}
