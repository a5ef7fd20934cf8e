package slurm

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

// Create submits a placeholder. sbatch has no idempotency key, so it looks for
// the token's job first, and again after submission: job numbers grow, so of two
// processes that submit at the same moment the one with the higher number sees
// the other's job, ends its own and answers the other's.
func (c *Cluster) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	offer, err := c.checkRequest(ctx, token, spec)
	if err != nil {
		return provisioners.Instance{}, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return provisioners.Instance{}, provisioners.Ended(ctx)
	}
	// Memory is asked first: what it knows now, the look must show while it lives.
	remembered, known := c.memory.byToken(token)
	v, err := c.listJobs(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	if found := v.jobOf(token); found != nil {
		return c.confirmJob(ctx, v, *found, spec)
	}
	if err := c.proveAbsence(v, token); err != nil {
		return provisioners.Instance{}, err
	}
	if known {
		if fresh, still := c.memory.byToken(token); still {
			remembered = fresh
		}
		return checkSameRequest(remembered.portInstance(), spec)
	}
	if ended, found, err := c.findAccounted(ctx, token, spec); found || err != nil {
		return ended, err
	}
	if err := c.checkRoom(ctx, offer, v); err != nil {
		return provisioners.Instance{}, err
	}
	return c.submitJob(ctx, token, spec, offer)
}

// checkRequest returns the offer, or why nothing can be made.
func (c *Cluster) checkRequest(ctx context.Context, token string, spec provisioners.Spec) (Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return Offer{}, err
	}
	if err := spec.Check(token); err != nil {
		return Offer{}, err
	}
	offer, known := c.config.findOffer(spec.Type)
	if !known || spec.Region != "" && spec.Region != c.config.Region {
		return Offer{}, provisioners.Errorf(provisioners.KindBadSpec, "no type %q in region %q", spec.Type, spec.Region)
	}
	return offer, checkComment(c.formatComment(tagsOf(token, spec)), offer.GPUs)
}

func tagsOf(token string, spec provisioners.Spec) tags {
	return tags{token: token, owner: spec.Owner, node: spec.NodeID, kind: spec.Type}
}

// jobOf returns the token's job.
func (v view) jobOf(token string) *job {
	i := slices.IndexFunc(v.jobs, func(j job) bool { return j.tags.token == token })
	if i < 0 {
		return nil
	}
	return &v.jobs[i]
}

// proveAbsence returns an error when the view does not prove that the token has no job.
func (c *Cluster) proveAbsence(v view, token string) error {
	if !v.whole {
		return provisioners.Errorf(provisioners.KindUnknown, "squeue's list of jobs is cut")
	}
	if mark := c.config.tokenMark(token); slices.Contains(v.strange, mark) {
		return provisioners.Errorf(provisioners.KindUnknown,
			"a job named forewarm-%s has another comment than it was made with", mark)
	}
	return nil
}

// confirmJob answers a job that was found, once it is remembered.
func (c *Cluster) confirmJob(ctx context.Context, v view, found job,
	spec provisioners.Spec) (provisioners.Instance, error) {
	if v.unsaved != nil {
		return provisioners.Instance{}, &provisioners.Error{Kind: provisioners.KindUnknown,
			Message: "remembering the machine", Err: v.unsaved}
	}
	instances, err := c.withNotices(ctx, []job{found})
	if err != nil {
		return provisioners.Instance{}, err
	}
	return checkSameRequest(instances[0], spec)
}

// checkSameRequest refuses a machine that was made for something else.
func checkSameRequest(instance provisioners.Instance, spec provisioners.Spec) (provisioners.Instance, error) {
	if instance.Type != spec.Type || instance.Owner != spec.Owner || instance.NodeID != spec.NodeID {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec,
			"the token was used for type %q, owner %q, node %q",
			instance.Type, instance.Owner, instance.NodeID)
	}
	return instance, nil
}

// submitted is what sbatch --parsable prints: the number, and the name of a
// cluster where there are several.
var submitted = regexp.MustCompile(`^([1-9][0-9]{0,9})(;\S*)?$`)

func (c *Cluster) submitJob(ctx context.Context, token string, spec provisioners.Spec,
	offer Offer) (provisioners.Instance, error) {
	output, err := c.askSlurm(ctx, provisioners.KindUnknown, c.placeholderScript(token, spec, offer), "sbatch",
		c.sbatchArgs(token, spec, offer)...)
	if err != nil {
		return provisioners.Instance{}, addPartition(fmt.Errorf("submitting: %w", err), offer)
	}
	number := submitted.FindStringSubmatch(strings.TrimSpace(output))
	if number == nil {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindUnknown, "sbatch printed %q",
			truncateText(output))
	}
	v, err := c.listJobs(ctx)
	if err != nil {
		return provisioners.Instance{}, &provisioners.Error{Kind: provisioners.KindUnknown,
			Message: "looking for job " + number[1], Err: err}
	}
	found := v.jobOf(token)
	if found == nil {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindUnknown,
			"job %s was submitted, and squeue does not show it", number[1])
	}
	return c.confirmJob(ctx, v, *found, spec)
}

// addPartition names the partition in an error of capacity.
func addPartition(err error, offer Offer) error {
	if provisioners.KindOf(err) != provisioners.KindCapacity {
		return err
	}
	return &provisioners.Error{Kind: provisioners.KindCapacity, Scope: offer.Partition, Err: err}
}

func (c *Cluster) sbatchArgs(token string, spec provisioners.Spec, offer Offer) []string {
	args := []string{
		"--parsable", "--no-requeue", "--nodes=1", "--ntasks=1", "--chdir=/",
		"--partition=" + offer.Partition, "--gres=" + offer.Gres + ":" + strconv.Itoa(offer.GPUs),
		"--job-name=" + jobName(c.config.tokenMark(token), spec.ExpiresAt),
		"--comment=" + c.formatComment(tagsOf(token, spec)),
		"--output=" + c.config.Output, "--error=" + c.config.Output,
	}
	if offer.Exclusive {
		args = append(args, "--exclusive", "--mem=0")
	}
	if offer.TimeLimit > 0 {
		args = append(args, "--time="+strconv.Itoa(int(offer.TimeLimit.Minutes())))
	}
	for _, option := range []struct {
		name, value string
	}{
		{"account", offer.Account}, {"qos", offer.QOS}, {"reservation", offer.Reservation},
		{"constraint", offer.Constraint},
		{"cpus-per-gpu", formatPositive(offer.CPUsPerGPU)}, {"mem-per-gpu", formatPositive(offer.HostMemoryPerGPU)},
	} {
		if option.value != "" {
			args = append(args, "--"+option.name+"="+option.value)
		}
	}
	return append(args, c.config.ExtraArgs...)
}

func formatPositive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
