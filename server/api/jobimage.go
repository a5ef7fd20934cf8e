package api

import (
	"context"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
	"github.com/forewarm/forewarm/server/telemetry"
)

type submission = operation.Change[contract.JobCreate, submitted, contract.JobsSubmitted]

// withImages has a submission refused whose image no node could run.
func (a *API) withImages(c submission) submission {
	check := c.Check
	c.Check = func(ctx context.Context, v operation.Viewer, b *contract.JobCreate) error {
		if err := check(ctx, v, b); err != nil {
			return err
		}
		return checkImage(b, func(pool string) error { return a.checkContainers(ctx, pool) })
	}
	return c
}

// checkImage refuses a submission whose image the nodes of its pool cannot run, or mounts without one.
func checkImage(b *contract.JobCreate, checkContainers func(pool string) error) error {
	switch {
	case b.Image == "" && len(b.Mounts) > 0:
		return problem.Invalid("mounts", "needs an image", "without one, a job finds the node's folders as they are")
	case b.Image == "":
		return nil
	}
	return checkContainers(b.Pool)
}

// checkContainers refuses a job with an image if daemons report in its pool, or in any pool if it names none,
// and none of them has a program that runs containers. Where none reports, nobody knows yet.
func (a *API) checkContainers(ctx context.Context, pool string) error {
	a.refreshTelemetry(ctx)
	return a.readSnapshot(ctx, func(r ledger.Reader) error {
		id, err := a.resolvePool(ctx, r, pool)
		if err != nil {
			return nil //nolint:nilerr // the ledger refuses it, with the reason
		}
		nodes, err := r.Nodes(ledger.NodeFilter{PoolID: id, Live: true}, ledger.Page{Limit: mostNodesAsked})
		if err != nil {
			return err
		}
		report := false
		for _, n := range nodes {
			said, state := a.Telemetry.Of(n.ID)
			if state != telemetry.Online || said.Look.Isolation == "" {
				continue
			}
			if report = true; said.Look.Containers != "" {
				return nil
			}
		}
		if !report || len(nodes) == mostNodesAsked { // of so many, others may
			return nil
		}
		return problem.Invalid("image", "cannot be used: no node there runs containers", "an operator installs apptainer or "+
			"podman on the nodes, or sets container_runtime of their daemons")
	})
}

// mostNodesAsked bounds how many nodes are looked at for one that runs containers.
const mostNodesAsked = 500

func decodeMounts(all []contract.JobMount) (out []job.Mount) {
	for _, m := range all {
		out = append(out, job.Mount(m))
	}
	return out
}

func encodeMounts(all []job.Mount) (out []contract.JobMount) {
	for _, m := range all {
		out = append(out, contract.JobMount(m))
	}
	return out
}
