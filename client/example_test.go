package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/client/clienttest"
	"github.com/forewarm/forewarm/contract"
)

// The caller brings the HTTP client, and with it decides on time limits, proxies and
// TLS.
func Example() {
	server := clienttest.Start()
	defer server.Close()

	api, err := client.New(server.URL, server.Key, &http.Client{Timeout: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	who, err := api.Whoami(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(who.OrganizationName, who.Role)
	// Output: acme operator
}

// Reserving ahead makes a promise: the GPUs are warm when the window begins. A person
// or a job then claims the reservation.
func ExampleClient_Reserve() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	tomorrow := time.Now().Add(24 * time.Hour).Truncate(time.Hour)
	promised, err := api.Reserve(ctx, contract.ReservationCreate{Name: "training", Model: "a100", GPUs: 4,
		Start: tomorrow, End: tomorrow.Add(3 * time.Hour)}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(promised.Name, promised.State, promised.GPUs, promised.Cost.Amount, promised.Cost.Currency)
	// Output: training booked 4 24.00 USD
}

// With DryRun the answer says what would happen, what it would cost, and nothing is
// changed.
func ExampleClient_Reserve_dryRun() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	tomorrow := time.Now().Add(24 * time.Hour).Truncate(time.Hour)
	shown, err := api.Reserve(ctx, contract.ReservationCreate{Pool: "lab", GPUs: 8,
		Start: tomorrow, End: tomorrow.Add(time.Hour)}, client.Options{DryRun: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	all, err := client.All(api.Reservations(ctx, client.Filter{All: true}))
	fmt.Println(shown.State, shown.Cost.Amount, len(all), err)
	// Output: booked 16.00 0 <nil>
}

// Wait lets the server hold its answer until the GPUs are there. What takes longer is
// answered as pending, and read again until it is active.
func ExampleClient_Allocate() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	held, err := api.Allocate(ctx, contract.AllocationCreate{Model: "a100", GPUs: 2, LeaseSeconds: 3600},
		client.Options{Wait: 30 * time.Second})
	for err == nil && held.State == "pending" {
		<-time.After(time.Second)
		held, err = api.Allocation(ctx, held.ID)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held.State, "with", len(held.Devices), "devices")

	released, err := api.Release(ctx, held.ID)
	fmt.Println(released.State != "active", err)
	// Output:
	// active with 2 devices
	// true <nil>
}

// What is held tells its holder how to get to the GPUs, and in which environment work
// finds them: here for a program on this machine.
func ExampleClient_Allocate_environment() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	held, err := api.Allocate(ctx, contract.AllocationCreate{Pool: "lab", GPUs: 2},
		client.Options{Wait: 30 * time.Second}) // the answer to who waits has the access
	for err == nil && held.Access == nil {
		<-time.After(time.Second)
		held, err = api.Allocation(ctx, held.ID)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	train := exec.CommandContext(ctx, "sh", "-c", "echo $NPROC_PER_NODE of $WORLD_SIZE GPUs, node $NODE_RANK of $NNODES")
	train.Env = append(os.Environ(), held.Environ(0)...)
	out, err := train.Output()
	fmt.Println(held.Access.Nodes[0].Kind, string(out), err)
	// Output: sim 2 of 2 GPUs, node 0 of 1
	//  <nil>
}

// A lease is extended by whole seconds before it ends.
func ExampleClient_Extend() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	held, err := api.Allocate(ctx, contract.AllocationCreate{Pool: "lab", GPUs: 1, LeaseSeconds: 3600},
		client.Options{Wait: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	longer, err := api.Extend(ctx, held.ID, 30*time.Minute, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(longer.LeaseUntil.Sub(held.LeaseUntil))
	// Output: 30m0s
}

// A promise that is not needed any more is given back, so that others can have its
// place.
func ExampleClient_CancelReservation() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	start := time.Now().Add(24 * time.Hour)
	promised, err := api.Reserve(ctx, contract.ReservationCreate{Pool: "lab", GPUs: 2, Start: start,
		End: start.Add(time.Hour)}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cancelled, err := api.CancelReservation(ctx, promised.ID)
	fmt.Println(cancelled.State, err)
	// Output: cancelled <nil>
}

// A list goes through all its pages, and its filter narrows it on the server.
func ExampleClient_Reservations() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	for day := range 3 {
		start := time.Now().Add(time.Duration(1+day) * 24 * time.Hour)
		if _, err := api.Reserve(ctx, contract.ReservationCreate{Name: fmt.Sprintf("day %d", day+1), Pool: "lab",
			GPUs: 1 + day, Start: start, End: start.Add(time.Hour)}, client.Options{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	filter := client.Filter{Pool: "lab", State: []string{"booked", "warming", "ready"}, PageSize: 2}
	gpus := 0
	for promised, err := range api.Reservations(ctx, filter) {
		if err != nil {
			fmt.Println(err)
			return
		}
		gpus += promised.GPUs
	}
	fmt.Println(gpus, "GPUs are promised")
	// Output: 6 GPUs are promised
}

// A request that the server answers with a problem fails with an *Error. Its code is
// what a program chooses by; blockers name all that is in the way, and offers what would
// be accepted instead.
func ExampleError() {
	api, stop := newExampleClient()
	defer stop()

	_, err := api.Allocate(context.Background(), contract.AllocationCreate{Pool: "lab", GPUs: 12},
		client.Options{})
	if refused, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(refused.Problem.Status, refused.Problem.Code)
		for _, blocker := range refused.Problem.Blockers {
			fmt.Println(blocker.Message)
		}
		for _, offer := range refused.Problem.Offers {
			fmt.Println("up to", offer.GPUs, "GPUs in", offer.PoolName)
			break
		}
	}
	// Output:
	// 422 no-matching-hardware
	// pool lab has at most 2 nodes of 4 GPUs; 3×4 never fits
	// up to 8 GPUs in lab
}

// A job waits for its GPUs, and goes on without who submitted it. An array makes many of one request,
// and the list finds them by what they share.
func ExampleClient_SubmitJob() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	submitted, err := api.SubmitJob(ctx, contract.JobCreate{Pool: "lab", GPUs: 2, MaxRuntimeSeconds: 600, Hold: true,
		Command: []string{"python3", "part.py"}, Array: &contract.JobArray{First: 0, Last: 9, Step: 5}}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for job, err := range api.Jobs(ctx, client.JobFilter{Array: submitted.ArrayID}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(*job.ArrayIndex, job.State, job.GPUs)
	}
	waits, err := api.ReleaseJob(ctx, submitted.Jobs[0].ID)
	fmt.Println(waits.State, err)
	// Output:
	// 5 held 2
	// 0 held 2
	// pending <nil>
}

// What a job writes is followed to its end, also across connections that are cut.
func ExampleClient_JobOutput() {
	api, stop := newExampleClient()
	defer stop()
	ctx := context.Background()

	submitted, err := api.SubmitJob(ctx, contract.JobCreate{Pool: "lab", Hold: true, Command: []string{"true"}},
		client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	over, err := api.CancelJob(ctx, submitted.Jobs[0].ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	for piece, err := range api.JobOutput(ctx, over.ID, client.OutputQuery{Follow: true}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s", piece.Stream, piece.Data)
	}
	fmt.Println(over.State, client.IsJobOver(over.State))
	// Output: cancelled true
}

// The same key sent twice has one effect: a request whose answer was lost is sent again
// without harm.
func ExampleWithIdempotencyKey() {
	api, stop := newExampleClient()
	defer stop()

	ctx := client.WithIdempotencyKey(context.Background(), "nightly-2026-11-20")
	in := contract.AllocationCreate{Pool: "lab", GPUs: 1}
	first, err := api.Allocate(ctx, in, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := api.Allocate(ctx, in, client.Options{})
	fmt.Println(first.ID == again.ID, err)
	// Output: true <nil>
}

// Patient waits for a server that is busy, as long as it says and at most for Limit.
func ExamplePatient() {
	server := clienttest.Start()
	defer server.Close()

	patient := client.Patient{Next: &http.Client{Timeout: time.Minute}, Limit: 30 * time.Second,
		Wait: func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		}}
	api, err := client.New(server.URL, server.Key, patient)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := api.Pool(context.Background(), "lab")
	fmt.Println(pool.Name, pool.Model, err)
	// Output: lab a100 <nil>
}

// newExampleClient is a client of an installation of its own.
func newExampleClient() (api *client.Client, stop func()) {
	server := clienttest.Start()
	return server.Client(), server.Close
}
