package provisioners_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/provisioners"
)

// The control plane makes, watches and removes a machine like this. The adapter is
// toy, the smallest that keeps the contract (toy_test.go); TestToy puts it through the
// conformance suite, as the test of every adapter must.
func ExampleProvisioner() {
	ctx, rental := context.Background(), newShop()
	var cloud provisioners.Provisioner = toy{rental}

	// The token is committed to the database before the first call. Whoever repeats the
	// call, because the answer was lost or a worker died, sends the same token.
	const token = "token-of-node-1"
	spec := provisioners.Spec{Type: toyType, Owner: "production", NodeID: "nod_1"}
	made, err := cloud.Create(ctx, token, spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := cloud.Create(ctx, token, spec)
	fmt.Println("created:", made.Phase, "the same machine again:", again.ID == made.ID, err)

	// Create does not wait for the boot. Devices are there once the machine runs.
	rental.clock.Advance(toyBoot)
	made, err = cloud.Get(ctx, made.ID)
	fmt.Println("booted:", made.Phase, len(made.Devices), "GPU at", made.Address, err)

	// The sweep compares what the provider has with what the ledger knows. Only a
	// complete list proves that a machine is missing.
	list, err := cloud.List(ctx, "production")
	fmt.Println("listed:", len(list.Instances), "complete:", list.Complete, err)

	// Delete may be repeated. The machine is billed until Get says that it is gone.
	for range 2 {
		if err := cloud.Delete(ctx, made.ID); err != nil {
			fmt.Println(err)
			return
		}
	}
	gone, err := cloud.Get(ctx, made.ID)
	fmt.Println("deleted:", gone.Phase, err)

	// A late duplicate of the first call must not make another machine.
	late, err := cloud.Create(ctx, token, spec)
	fmt.Println("created too late:", late.Phase, late.ID == made.ID, err)
	// Output:
	// created: booting the same machine again: true <nil>
	// booted: running 1 GPU at box-0.toy.invalid <nil>
	// listed: 1 complete: true <nil>
	// deleted: terminated <nil>
	// created too late: terminated true <nil>
}

// An error says what the caller does next. After a final one no machine exists and the
// request is over; after any other the call is repeated with the same token.
func ExampleFinal() {
	ctx, cloud := context.Background(), toy{newShop()}
	spec := provisioners.Spec{Type: toyType, Owner: "production", NodeID: "nod_1"}
	for _, token := range []string{"token-1", "token-2", "token-3", "token-4"} {
		_, err := cloud.Create(ctx, token, spec)
		if refused, ok := errors.AsType[*provisioners.Error](err); ok {
			fmt.Println(refused.Kind, "of", refused.Scope, "final:", provisioners.Final(err))
		}
	}
	lost := errors.New("connection reset by peer")
	fmt.Println(provisioners.KindOf(lost), "final:", provisioners.Final(lost))
	// Output:
	// capacity of box final: true
	// unknown final: false
}
