package slurm

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// settings are what an observer must know of slurm.conf.
type settings struct {
	suspend   time.Duration // SuspendTime; 0: nodes are never suspended
	minJobAge time.Duration // for how long squeue shows a job that has ended
	private   []string      // PrivateData
	// tracksGPUs says that accounting knows of GPUs (AccountingStorageTRES).
	tracksGPUs bool
	// partitions have a SuspendTime of their own.
	partitions map[string]time.Duration
	ahead      time.Duration // of our clock is the controller's, as far as whole seconds tell
}

const (
	// settingsAge is how long a refusal of rights is believed, and settings are where
	// the controller does not tell them anew.
	settingsAge = time.Hour
	// freshAge is how long settings, and the controller's clock, are not asked for again.
	freshAge = 5 * time.Minute
	// beatsPerSuspend is how many heartbeats fit into SuspendTime: two may be lost.
	beatsPerSuspend = 3
	// leastSuspend leaves Keep and Slurm's own loops, of some seconds each, their time.
	leastSuspend = 15 * time.Second
	// recordInterval is how far ahead the heartbeat is that only carries tags.
	recordInterval = time.Hour
)

var settingLine = regexp.MustCompile(`(?m)^(SuspendTime|MinJobAge|PrivateData|AccountingStorageTRES) *= *(.*)$`)

// readSettings asks for the settings, once in a while.
func (o *Observed) readSettings(ctx context.Context) (settings, error) {
	o.mu.Lock()
	known, asked := o.settings, o.asked
	o.mu.Unlock()
	age := o.clock.Now().Sub(asked)
	if !asked.IsZero() && age < freshAge {
		return known, nil
	}
	read, err := o.askSettings(ctx, o.clock)
	if err != nil {
		if !asked.IsZero() && age < settingsAge {
			return known, nil
		}
		return settings{}, err
	}
	o.mu.Lock()
	o.settings, o.asked = read, o.clock.Now()
	o.mu.Unlock()
	return read, nil
}

func (c commands) askSettings(ctx context.Context, clock clock.Clock) (settings, error) {
	before := clock.Now()
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "scontrol", "show", "config")
	if err != nil {
		return settings{}, fmt.Errorf("reading Slurm's settings: %w", err)
	}
	after := clock.Now()
	read, err := parseSettings(output)
	if err != nil {
		return settings{}, err
	}
	read.ahead = clockAhead(output, before, after)
	output, err = c.askSlurm(ctx, provisioners.KindTransient, "", "scontrol", "--oneliner", "--all", "show", "partition")
	if err != nil {
		return settings{}, fmt.Errorf("reading the partitions' settings: %w", err)
	}
	read.partitions = parsePartitions(output)
	return read, nil
}

var configTime = regexp.MustCompile(`^Configuration data as of ([0-9]+)\n`)

// clockAhead is the least by which the controller's clock must be ahead of ours to have
// said its time, in whole seconds, between two moments of ours; 0 where it says none.
func clockAhead(config string, before, after time.Time) time.Duration {
	said := configTime.FindStringSubmatch(config)
	if said == nil {
		return 0
	}
	at, err := parseInstant(said[1])
	if err != nil || at.IsZero() {
		return 0
	}
	least, most := at.Sub(after), at.Add(time.Second).Sub(before)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}

// clusterNow is the time by the controller's clock, by which all of Slurm's times are.
func (o *Observed) clusterNow() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clock.Now().Add(o.settings.ahead)
}

func parseSettings(output string) (settings, error) {
	values := map[string]string{}
	for _, line := range settingLine.FindAllStringSubmatch(output, -1) {
		values[line[1]] = strings.TrimSpace(line[2])
	}
	if len(values) < 3 {
		return settings{}, provisioners.Errorf(provisioners.KindTransient,
			"scontrol show config does not say SuspendTime, MinJobAge and PrivateData")
	}
	return settings{suspend: parseSeconds(values["SuspendTime"]), minJobAge: parseSeconds(values["MinJobAge"]),
		private:    strings.Split(values["PrivateData"], ","),
		tracksGPUs: strings.Contains(values["AccountingStorageTRES"], "gres/gpu")}, nil
}

var partitionSuspend = regexp.MustCompile(`(?m)^PartitionName=(\S+) .*\bSuspendTime=(\S+)`)

func parsePartitions(output string) map[string]time.Duration {
	own := map[string]time.Duration{}
	for _, line := range partitionSuspend.FindAllStringSubmatch(output, -1) {
		if line[2] != "GLOBAL" {
			own[line[1]] = parseSeconds(line[2])
		}
	}
	return own
}

// of returns the settings as they are for nodes of the partition.
func (s settings) of(partition string) settings {
	if own, found := s.partitions[partition]; found {
		s.suspend = own
	}
	return s
}

// hastiest returns the settings of the offers' partition with the shortest interval.
func (s settings) hastiest(offers []Offer) settings {
	best := s.of(offers[0].Partition)
	for _, o := range offers[1:] {
		if other := s.of(o.Partition); other.interval() < best.interval() {
			best = other
		}
	}
	return best
}

// saves reports whether Slurm powers any node up or down. Where SuspendTime is infinite for
// the cluster and every partition its power saving is off, and a job on a node without
// power waits for ever.
func (s settings) saves() bool {
	for _, own := range s.partitions {
		if own > 0 {
			return true
		}
	}
	return s.suspend > 0
}

// parseSeconds reads "300 sec". Slurm's words for never (NONE, INFINITE, -1) are 0.
func parseSeconds(text string) time.Duration {
	number, _, _ := strings.Cut(text, " ")
	seconds, err := strconv.Atoi(number)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// interval is how long a kept node may be idle until its next heartbeat is due.
func (s settings) interval() time.Duration {
	if s.suspend == 0 {
		return recordInterval
	}
	return s.suspend / beatsPerSuspend
}

// beats reports whether nodes must be kept from being suspended at all.
func (s settings) beats() bool { return s.suspend > 0 }

// hides reports whether PrivateData has the word.
func (s settings) hides(word string) bool { return slices.Contains(s.private, word) }

// checkPace returns an error when heartbeats would have to follow each other too fast.
func (s settings) checkPace() error {
	if s.beats() && s.suspend < leastSuspend {
		return provisioners.Errorf(provisioners.KindBadSpec,
			"SuspendTime is %v, and a node can be kept warm from %v on: set SuspendTime in slurm.conf", s.suspend,
			leastSuspend)
	}
	return nil
}
