package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

// prompt is how long a start may take that counts as one without a wait.
const prompt = 3 * time.Second

// late is by how much later a job may start than its twin and still not count as delayed.
const late = time.Second

// launchRound is how long the rounds are in which slurmctld launches the jobs whose nodes
// have booted (job_time_limit, PERIODIC_TIMEOUT), and a second for the round itself. When
// they come depends on when that slurmctld was started.
const launchRound = 31 * time.Second

// powered is for how long nodes had power, their boots included.
func (t truth) powered() (sum time.Duration) {
	for _, all := range t.nodes {
		for _, u := range all {
			sum += max(0, earlier(u.down, t.until).Sub(u.up))
		}
	}
	return sum
}

// worked is for how long nodes had work of the users, however much of it.
func (t truth) worked() (sum time.Duration) {
	type span struct{ from, until time.Time }
	byNode := map[string][]span{}
	for _, s := range t.starts {
		for _, node := range s.nodes {
			byNode[node] = append(byNode[node], span{s.from, earlier(s.until, t.until)})
		}
	}
	for _, spans := range byNode {
		slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
		var end time.Time
		for _, s := range spans {
			if s.from.Before(end) {
				s.from = end
			}
			if s.until.After(end) {
				sum += s.until.Sub(s.from)
				end = s.until
			}
		}
	}
	return sum
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// overheadPercent is the time of nodes without work, in percent of their time with work.
func (t truth) overheadPercent() float64 {
	worked := t.worked()
	if worked == 0 {
		return 0
	}
	return 100 * float64(t.powered()-worked) / float64(worked)
}

// waitsOf lists what starts waited, in seconds, the shortest first.
func waitsOf(starts []start) []float64 {
	waits := make([]float64, len(starts))
	for i, s := range starts {
		waits[i] = s.wait().Seconds()
	}
	slices.Sort(waits)
	return waits
}

// quantile is by nearest rank, of sorted values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

func (t truth) zeroWaitPercent() float64 {
	zero := 0
	for _, s := range t.starts {
		if s.wait() <= prompt {
			zero++
		}
	}
	return 100 * float64(zero) / float64(max(1, len(t.starts)))
}

// printArm prints what the users of an arm waited, and what its nodes did meanwhile.
func printArm(out io.Writer, name string, t truth) {
	waits := waitsOf(t.starts)
	figure := func(name string, v float64, unit string) { rig.Series{v}.Print(out, name, unit) }
	fmt.Fprintf(out, "%s: %d starts; nodes had power for %s, work for %s\n", name, len(waits),
		t.powered().Truncate(time.Second), t.worked().Truncate(time.Second))
	figure("slurm_"+name+"_wait_s", mean(waits), "s")
	figure("slurm_"+name+"_wait_p50_s", quantile(waits, 0.5), "s")
	figure("slurm_"+name+"_wait_p90_s", quantile(waits, 0.9), "s")
	figure("slurm_"+name+"_overhead_percent", t.overheadPercent(), "%")
	figure("slurm_"+name+"_zero_wait_percent", t.zeroWaitPercent(), "%")
}

// delay is a job that started later than its twin in another arm did.
type delay struct{ with, without start }

// delayed pairs the starts of two arms, a job with its twin: the same submission at the
// same moment. missing are those that only one of them has.
func delayed(with, without []start) (found []delay, missing []string) {
	twins := map[string]start{}
	for _, s := range without {
		twins[s.key] = s
	}
	for _, s := range with {
		twin, paired := twins[s.key]
		delete(twins, s.key)
		if !paired {
			missing = append(missing, s.key)
		} else if s.wait() > twin.wait()+late {
			found = append(found, delay{s, twin})
		}
	}
	for key := range twins {
		missing = append(missing, key)
	}
	slices.Sort(missing)
	slices.SortFunc(found, func(a, b delay) int { return cmp.Compare(a.with.key, b.with.key) })
	return found, missing
}

// explain says what the two jobs found.
func (d delay) explain() string {
	return fmt.Sprintf("%s waited %.1f s (%s), and %.1f s in cold (%s)", d.with.key, d.with.wait().Seconds(),
		d.with.found(), d.without.wait().Seconds(), d.without.found())
}

// explainLuck says, of a job that waited for a boot which its twin was spared, what had left
// the twin's node up, and when that ended in both arms: where it ended sooner, by more
// than the suspend time before the job came, nobody was in the job's way.
func (d delay) explainLuck(with, without []start) string {
	var last start
	for _, s := range without {
		shared := slices.ContainsFunc(s.nodes, func(node string) bool { return slices.Contains(d.without.nodes, node) })
		if shared && s.from.Before(d.without.came) && s.until.After(last.until) {
			last = s
		}
	}
	if !d.with.boot || d.without.boot || last.key == "" {
		return ""
	}
	i := slices.IndexFunc(with, func(s start) bool { return s.key == last.key })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("; its twin's node was up after %s, which ended %.0f s before it came, and %.0f s in this arm",
		last.key, d.without.came.Sub(last.until).Seconds(), d.with.came.Sub(with[i].until).Seconds())
}

// countLucky counts those whose twin found its nodes up, and that did not find theirs so.
func countLucky(all []delay) (count int) {
	for _, d := range all {
		if d.with.boot && !d.without.boot {
			count++
		}
	}
	return count
}

// countBlocked counts those that waited although their nodes were up.
func countBlocked(all []delay) (count int) {
	for _, d := range all {
		if !d.with.boot {
			count++
		}
	}
	return count
}

// countByRound counts those whose nodes had booted as soon as their twin's, and that the
// next round of their slurmctld launched: it came later after the boot than the twin's.
func countByRound(all []delay) (count int) {
	for _, d := range all {
		soon := d.with.ready.Sub(d.with.came) <= d.without.ready.Sub(d.without.came)+late
		if d.with.boot && d.without.boot && soon && d.with.began.Sub(d.with.ready) <= launchRound {
			count++
		}
	}
	return count
}

func (s start) found() string {
	what := "up"
	if s.boot {
		what = "not all up"
	}
	return strings.Join(s.nodes, ",") + " " + what + " when it came"
}

// claimed is what Forewarm reported of one start.
type claimed struct {
	id    string
	nodes []string // that were kept for a promise which it claimed; nil for none
}

// verdict holds what Forewarm reported against the truth.
type verdict struct {
	missed      []string // starts that it never reported
	falseClaims []string
	warm        []start // those that claimed a promise
}

func judgeReports(t truth, reports []claimed) verdict {
	var v verdict
	byID := map[string]claimed{}
	for _, r := range reports {
		byID[r.id] = r
	}
	real := map[string]bool{}
	for _, s := range t.starts {
		real[s.id] = true
		r, reported := byID[s.id]
		switch {
		case !reported:
			v.missed = append(v.missed, s.key+" (job "+s.id+")")
		case r.nodes == nil:
		case s.boot || !slices.Equal(slices.Sorted(slices.Values(r.nodes)), slices.Sorted(slices.Values(s.nodes))):
			v.falseClaims = append(v.falseClaims, fmt.Sprintf("%s, which ran on %s, is said to have had %s",
				s.key, s.found(), strings.Join(r.nodes, ",")))
		default:
			v.warm = append(v.warm, s)
		}
	}
	for _, r := range reports {
		if r.nodes != nil && !real[r.id] {
			v.falseClaims = append(v.falseClaims, "job "+r.id+" never began")
		}
	}
	return v
}
