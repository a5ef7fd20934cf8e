package simcluster

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Bounds of what is remembered of jobs that have ended.
const (
	historyFor = 7 * 24 * time.Hour
	maxHistory = 20_000
)

// Observe tells what the cluster does. A mark is the time of the look: what ended at it or
// later is told to who comes with it.
func (c *Cluster) Observe(ctx context.Context, since provisioners.Mark) (provisioners.Observation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(ctx); err != nil {
		return provisioners.Observation{}, err
	}
	from := c.at.Add(time.Microsecond)
	if since != "" {
		var err error
		if from, err = c.config.readMark(since); err != nil {
			return provisioners.Observation{}, err
		}
	}
	seen := provisioners.Observation{At: c.at, Mark: c.config.markOf(c.at), Complete: !from.Before(c.forgotten),
		KeepWithin: c.config.SuspendTime / 3, Work: c.listWork(from)}
	for _, n := range c.nodes {
		seen.Nodes = append(seen.Nodes, n.portNode())
	}
	slices.SortFunc(seen.Nodes, func(a, b provisioners.ObservedNode) int { return cmp.Compare(a.Name, b.Name) })
	return seen, c.saveState()
}

// listWork lists the jobs that are not over, and those that ended at the time or later.
func (c *Cluster) listWork(from time.Time) []provisioners.Work {
	var work []provisioners.Work
	for _, j := range c.ended {
		if !j.CPUOnly && !j.Ended.Before(from) {
			work = append(work, j.portWork(""))
		}
	}
	first := map[string]bool{}
	for _, j := range c.jobs {
		reason := provisioners.WaitPriority
		if len(j.On) == 0 && !first[j.Type] {
			reason, first[j.Type] = provisioners.WaitResources, true
		}
		if !j.CPUOnly {
			work = append(work, j.portWork(reason))
		}
	}
	slices.SortFunc(work, func(a, b provisioners.Work) int { return cmp.Compare(a.ID, b.ID) })
	return work
}

func (c Config) markOf(at time.Time) provisioners.Mark {
	sum := c.digestOf("mark", at.UnixMicro())
	return provisioners.Mark(fmt.Sprintf("%d-%s", at.UnixMicro(), hex.EncodeToString(sum[:4])))
}

// readMark returns the time of a mark that this cluster made.
func (c Config) readMark(mark provisioners.Mark) (time.Time, error) {
	digits, _, _ := strings.Cut(string(mark), "-")
	micros, err := strconv.ParseInt(digits, 10, 64)
	at := time.UnixMicro(micros).UTC()
	if err != nil || c.markOf(at) != mark {
		return time.Time{}, &provisioners.Error{Kind: provisioners.KindBadSpec, Message: fmt.Sprintf("mark %.40q", mark),
			Err: provisioners.ErrForeignMark}
	}
	return at, nil
}

// forgetOld forgets jobs and tokens whose time is over.
func (c *Cluster) forgetOld() {
	keep := 0
	for keep < len(c.ended) && (len(c.ended)-keep > maxHistory || c.ended[keep].Ended.Before(c.at.Add(-historyFor))) {
		c.forgotten = c.ended[keep].Ended.Add(time.Microsecond)
		keep++
	}
	c.ended = slices.Delete(c.ended, 0, keep)
	for token, k := range c.keepings {
		if !k.Ended.IsZero() && !c.at.Before(k.Ended.Add(tokenMemory)) {
			delete(c.keepings, token)
		}
	}
}
