package hold

import (
	"context"
	"os"
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
