package slurm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// A heartbeat is a job that does nothing on one node. One of the sort bootBeat makes
// Slurm power the node up; one that is ahead is pending until the node has been idle
// for some time, and carries the record of the keeping until then.
type heartbeat struct {
	id                        int
	sort                      beatSort
	state, reason, user, mark string
	phase                     provisioners.Phase
	submitted, begin, ended   time.Time
	cpus                      int
	tags                      tags
	host                      string    // the node that it is bound to
	since                     time.Time // when the keeping began; zero in its first jobs
}

type beatSort string

const (
	bootBeat  beatSort = "b"
	aheadBeat beatSort = "h"
)

// isLive reports whether the heartbeat has not ended.
func (b heartbeat) isLive() bool {
	return b.phase == provisioners.Booting || b.phase == provisioners.Running
}

// isAhead reports whether the heartbeat still waits, so that it can be moved.
func (b heartbeat) isAhead() bool { return b.sort == aheadBeat && b.state == "PENDING" }

var beatColumns = []string{"JobID", "State", "Reason", "SubmitTime", "StartTime", "EligibleTime", "EndTime", "NumCPUs",
	"UserName", "Name", "Comment"}

var beatName = regexp.MustCompile(`^forewarm-([0-9a-f]{16})-([bh])$`)

// beatView is what one squeue showed of our heartbeats.
type beatView struct {
	beats []heartbeat
	user  string // whose jobs they are; empty: there is none
	// jobs are all of our user's by their numbers, own those with a name of ours, which
	// nobody else can have given them.
	jobs, own map[string]bool
	// elsewhere are nodes that other provisioners of the same user keep.
	elsewhere map[string]bool
	whole     bool
	strange   []string // marks of jobs that look like ours and were not understood
}

func (v beatView) isComplete() bool { return v.whole && len(v.strange) == 0 }

// listBeats asks for all heartbeats of our user that Slurm still knows.
func (o *Observed) listBeats(ctx context.Context) (beatView, error) {
	v := beatView{elsewhere: map[string]bool{}, jobs: map[string]bool{}, own: map[string]bool{}}
	seen := o.newRows(len(beatColumns), func(row []string) error {
		v.takeJob(o.config, row)
		return nil
	})
	err := o.readRows(ctx, seen, "squeue", "--me", "--noheader", "--states=all",
		"--Format="+seen.formatCells(beatColumns))
	if err != nil {
		return beatView{}, fmt.Errorf("listing heartbeats: %w", err)
	}
	v.whole = seen.isWhole()
	return v, nil
}

// takeJob takes in one job of our user.
func (v *beatView) takeJob(c Config, row []string) {
	v.user, v.jobs[row[0]] = row[8], true
	v.own[row[0]] = isOwnName(row[9])
	name := beatName.FindStringSubmatch(row[9])
	if name == nil {
		return
	}
	b := heartbeat{mark: name[1], sort: beatSort(name[2]), state: row[1], reason: row[2], user: row[8]}
	provisioner, err := b.parseComment(row[10])
	err = errors.Join(err, b.parseTypedFields(row))
	switch {
	case provisioner != "" && provisioner != c.Name:
		if err != nil || b.isLive() {
			v.elsewhere[b.host] = true
		}
	case err != nil || b.mark != c.tokenMark(b.tags.token):
		v.strange = append(v.strange, b.mark)
	default:
		v.beats = append(v.beats, b)
	}
}

func (b *heartbeat) parseTypedFields(row []string) error {
	var errs [5]error
	var eligible time.Time
	b.id, errs[0] = strconv.Atoi(row[0])
	b.submitted, errs[1] = parseInstant(row[3])
	b.begin, errs[2] = parseInstant(row[4])
	eligible, errs[3] = parseInstant(row[5])
	b.ended, errs[4] = parseInstant(row[6])
	b.cpus, _ = strconv.Atoi(row[7]) // more than we asked for where nodes are given out whole
	// Of a job that waits for a node, slurmctld tells when it expects it to start, which may
	// be after the heartbeat that follows.
	if b.state == "PENDING" && !eligible.IsZero() {
		b.begin = eligible
	}
	var known bool
	b.phase, known = phases[b.state]
	switch err := errors.Join(errs[:]...); {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("state %.40q", b.state)
	case b.submitted.IsZero():
		return errors.New("no time of submission")
	}
	return nil
}

// beatComment is what a heartbeat's comment says, in the words of a placeholder's and
// with what it is (v), its node (w) and since when that is kept (x).
func (c Config) beatComment(k keeping) string {
	values := url.Values{
		"p": {c.Name}, "t": {k.tags.token}, "o": {k.tags.owner}, "n": {k.tags.node}, "y": {k.tags.kind},
		"v": {"heartbeat"}, "w": {k.host},
	}
	if !k.created.IsZero() {
		values.Set("x", strconv.FormatInt(k.created.Unix(), 10))
	}
	return commentStart + values.Encode()
}

// parseComment reads the comment back.
func (b *heartbeat) parseComment(comment string) (provisioner string, err error) {
	text, ours := strings.CutPrefix(comment, commentStart)
	values, err := url.ParseQuery(text)
	if !ours || err != nil {
		return "", errors.New("the comment is not ours")
	}
	b.tags = tags{token: values.Get("t"), owner: values.Get("o"), node: values.Get("n"), kind: values.Get("y")}
	b.host, provisioner = values.Get("w"), values.Get("p")
	if provisioner == "" || b.tags.token == "" || b.tags.owner == "" || b.tags.node == "" || b.tags.kind == "" ||
		b.host == "" || values.Get("v") != "heartbeat" {
		return "", errors.New("the comment lacks a tag")
	}
	b.since, err = parseInstant(values.Get("x"))
	return provisioner, err
}

// beatScript does nothing: that it runs is what counts.
const beatScript = "#!/bin/sh\nexit 0\n"

// submitBeat submits one heartbeat for the kept node, which may begin after the delay.
// It is never of a higher priority than what users submit, and never runs again.
func (o *Observed) submitBeat(ctx context.Context, k keeping, sort beatSort, delay time.Duration) error {
	offer, _ := o.config.findOffer(k.tags.kind)
	args := []string{
		"--parsable", "--no-requeue", "--nodes=1", "--ntasks=1", "--mem=1", "--time=2", "--nice", "--chdir=/",
		"--nodelist=" + k.host, "--partition=" + offer.Partition,
		"--job-name=forewarm-" + o.config.tokenMark(k.tags.token) + "-" + string(sort),
		"--comment=" + o.config.beatComment(k),
		"--output=" + o.config.Output, "--error=" + o.config.Output,
	}
	if delay > 0 {
		args = append(args, "--begin="+relativeTime(delay))
	}
	for _, option := range [][2]string{{"account", offer.Account}, {"qos", offer.QOS},
		{"reservation", offer.Reservation}} {
		if option[1] != "" {
			args = append(args, "--"+option[0]+"="+option[1])
		}
	}
	_, err := o.askSlurm(ctx, provisioners.KindUnknown, beatScript, "sbatch", append(args, o.config.ExtraArgs...)...)
	if err != nil {
		return addPartition(fmt.Errorf("submitting a heartbeat for node %s: %w", k.host, err), offer)
	}
	o.mu.Lock()
	o.submitted++
	o.mu.Unlock()
	return nil
}

// relativeTime is Slurm's way to say how long from now.
func relativeTime(delay time.Duration) string {
	return "now+" + strconv.Itoa(int(max(delay, time.Second).Seconds()))
}

// moveBeat moves the beginning of a heartbeat that is ahead. One that has begun in the
// meantime stays as it is.
func (c commands) moveBeat(ctx context.Context, b heartbeat, delay time.Duration) error {
	_, err := c.askSlurm(ctx, provisioners.KindTransient, "", "scontrol", "update", "JobId="+strconv.Itoa(b.id),
		"StartTime="+relativeTime(delay))
	if err != nil && provisioners.KindOf(err) != provisioners.KindNotFound {
		return fmt.Errorf("moving heartbeat %d: %w", b.id, err)
	}
	return nil
}

// cancelBeats ends those of the heartbeats that live.
func (c commands) cancelBeats(ctx context.Context, beats []heartbeat) error {
	var ids []string
	for _, b := range beats {
		if b.isLive() {
			ids = append(ids, strconv.Itoa(b.id))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := c.askSlurm(ctx, provisioners.KindUnknown, "", "scancel", ids...)
	if err != nil && provisioners.KindOf(err) != provisioners.KindNotFound {
		return fmt.Errorf("cancelling heartbeats %s: %w", strings.Join(ids, ", "), err)
	}
	return nil
}
