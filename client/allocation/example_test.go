package allocation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/forewarm/forewarm/client/allocation"
	"github.com/forewarm/forewarm/client/clienttest"
	"github.com/forewarm/forewarm/client/session"
	"github.com/forewarm/forewarm/contract"
)

// Acquire returns when the GPUs can be used, and keeps their lease until Release: here for a
// command on their node.
func Example() {
	server, stop := startServer()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // no longer than this for the GPUs
	defer cancel()

	held, err := allocation.Acquire(ctx, server, allocation.Request{AllocationCreate: contract.AllocationCreate{
		Pool: "lab", GPUs: 2, LeaseSeconds: 600}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { fmt.Println("released:", held.Release(context.WithoutCancel(ctx))) }()

	train := held.Exec(ctx, "sh", "-c", `echo "training with seed $SEED on $NPROC_PER_NODE GPUs"`)
	train.Env = []string{"SEED=7"}
	train.Stdout, train.Stderr = os.Stdout, os.Stderr
	if err := train.Run(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// training with seed 7 on 2 GPUs
	// released: <nil>
}

// A gang runs the same command on each of its nodes, with the rank of the node and the address at
// which they meet: what torchrun and its like ask for.
func ExampleHeld_ExecEach() {
	server, stop := startServer()
	defer stop()
	ctx := context.Background()

	held, err := allocation.Acquire(ctx, server, allocation.Request{AllocationCreate: contract.AllocationCreate{
		Pool: "lab", GPUs: 8, Layout: contract.Layout{Nodes: 2}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = held.Release(ctx) }()

	launcher := held.ExecEach(ctx, "sh", "-c", `echo "node $NODE_RANK of $NNODES" > where; cat where`)
	outputs := make([]bytes.Buffer, len(launcher.Cmds))
	for rank, cmd := range launcher.Cmds {
		cmd.Stdout = &outputs[rank]
	}
	err = launcher.Run()
	fmt.Print(outputs[0].String(), outputs[1].String())
	fmt.Println(err)
	// Output:
	// node 0 of 2
	// node 1 of 2
	// <nil>
}

// A command that fails has an exit code, as with os/exec.
func ExampleExitError() {
	server, stop := startServer()
	defer stop()
	ctx := context.Background()

	held, err := allocation.Acquire(ctx, server, allocation.Request{AllocationCreate: contract.AllocationCreate{
		Model: "a100", GPUs: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = held.Release(ctx) }()

	_, err = held.Exec(ctx, "sh", "-c", "exit 3").Output()
	if failed, ok := errors.AsType[*allocation.ExitError](err); ok {
		fmt.Println(failed.ExitCode(), failed)
	}
	// Output: 3 node 0: exit status 3
}

// startServer starts an installation whose nodes run daemons. Of a server elsewhere it is
//
//	api, err := client.New("https://forewarm.example.com", key, http.DefaultClient)
//	server := session.Server{API: api, HTTP: http.DefaultClient}
func startServer() (server session.Server, stop func()) {
	i := clienttest.Start()
	i.StartDaemons()
	return session.Server{API: i.Client(), HTTP: &http.Client{}}, i.Close
}
