package hold

import (
	"context"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ForgetRights has the keeper do as one whose daemon is not root.
func (k *Keeper) ForgetRights() {
	k.ownUsers, k.cgroups, k.filters, k.unbounded = false, "", false, "it is not root"
}

// Share is what a hold may have.
type Share = share

// ShareOf is that of a hold with such shares of GPUs, on a machine.
func ShareOf(b Bounds, memory int64, cpus int, of Shares, there int) (Share, error) {
	parsed, err := b.parse()
	return parsed.share(machine{memory: memory, cpus: cpus}, of, there), err
}

// LeadsTheMachine says who may divide a machine.
var LeadsTheMachine = leadsTheMachine

// EachName lists a folder.
func EachName(ctx context.Context, f *os.File, do func(name string)) error {
	return eachName(ctx, f, do)
}

// UnboundPinning is unboundPinning.
var UnboundPinning = unboundPinning

// MetadataReached says why work cannot be kept from the metadata.
func MetadataReached(k *Keeper) error { return k.metadata.missing }

// KeptGroup is keptGroup.
const KeptGroup = keptGroup

// ClearShared clears a shared folder, and returns whether something was found, and in whose folders not all was seen.
func ClearShared(ctx context.Context, dir string, wanted func(unix.Stat_t) bool) (bool, []uint32, error) {
	all, err := clearShared(ctx, dir, wanted)
	return all.found, slices.Collect(maps.Keys(all.left)), err
}

// BoundLooking has walks look at less of each holder who is still here, until restore is called.
func BoundLooking(most int) (restore func()) {
	before := mostLooked
	mostLooked = most
	return func() { mostLooked = before }
}

// DescribeLeft says whose folders were left.
func DescribeLeft(users ...uint32) string {
	left := map[uint32]bool{}
	for _, uid := range users {
		left[uid] = true
	}
	return describeLeft(left)
}

// HasLeft reports whether the end of a hold that left something in the folders of a user is to look once more.
func HasLeft(k *Keeper, user uint32, id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.book.hasLeft(map[uint32]bool{user: true}, k.again, id)
}
