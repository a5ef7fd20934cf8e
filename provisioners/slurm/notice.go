package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// withNotices are the machines, each with the most urgent thing that Slurm
// announces for it: preemption, then its time limit, then its node's state.
func (c *Cluster) withNotices(ctx context.Context, jobs []job) ([]provisioners.Instance, error) {
	troubled, err := c.degradedNodes(ctx, jobs)
	if err != nil {
		return nil, err
	}
	instances := make([]provisioners.Instance, len(jobs))
	for i, j := range jobs {
		instances[i] = c.portInstance(j)
		if j.phase == provisioners.Running {
			instances[i].Notice = c.noticeOf(j, troubled)
		}
	}
	return instances, nil
}

// degradedNodes are the nodes of the running jobs that are degraded, by name.
func (c *Cluster) degradedNodes(ctx context.Context, jobs []job) (map[string]node, error) {
	var names []string
	for _, j := range jobs {
		if j.phase == provisioners.Running && j.node != "" && !slices.Contains(names, j.node) {
			names = append(names, j.node)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	nodes, err := c.listNodes(ctx, "--all", "--nodes="+strings.Join(names, ","))
	if err != nil {
		return nil, err
	}
	troubled := map[string]node{}
	for _, n := range nodes {
		if n.hasState(degraded) {
			troubled[n.name] = n
		}
	}
	return troubled, nil
}

func (c *Cluster) noticeOf(j job, troubled map[string]node) *provisioners.Notice {
	bad, degraded := troubled[j.node]
	switch {
	case !j.preempted.IsZero():
		return &provisioners.Notice{Kind: provisioners.NoticeInterruption, At: c.preemptedAt(j),
			Message: "Slurm is preempting the job"}
	case !j.endTime.IsZero() && j.endTime.Sub(c.clock.Now()) <= c.config.EndNotice:
		return &provisioners.Notice{Kind: provisioners.NoticeExpiring, At: j.endTime, Message: "the job's time limit"}
	case j.state == "SUSPENDED" || j.state == "STOPPED":
		return &provisioners.Notice{Kind: provisioners.NoticeDegraded,
			Message: "the job is " + strings.ToLower(j.state)}
	case degraded:
		return &provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: bad.degradedMessage()}
	case j.found.eccErrors > 0:
		return &provisioners.Notice{Kind: provisioners.NoticeDegraded,
			Message: fmt.Sprintf("%d uncorrected ECC errors when the machine started", j.found.eccErrors)}
	}
	return nil
}

// preemptedAt is when a preempted job is killed. squeue hides it for a job
// without a time limit; then it is what the offer says of the partition.
func (c *Cluster) preemptedAt(j job) time.Time {
	offer, _ := c.config.findOffer(j.tags.kind)
	if !j.endTime.IsZero() || offer.PreemptionWarning == 0 {
		return j.endTime
	}
	return j.preempted.Add(offer.PreemptionWarning)
}
