package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// score is how jobs fared under a policy. A delay is from submission to end, less the
// time that the job takes alone: what it waited, and what leaving cost it.
type score struct {
	mean, p95, longest float64 // delay, seconds
	slowdown           float64 // mean of (delay + duration) / duration, durations below a minute counted as one
	lost               float64 // GPU-hours of work that was done twice, and of starting again
	left               int     // how often jobs left for others
}

func (p *play) judge() score {
	s := p.score
	delays := make([]float64, len(p.jobs))
	for i, j := range p.jobs {
		delays[i] = float64(p.ended[i] - j.Submit - j.Duration)
		s.mean += delays[i] / float64(len(p.jobs))
		took := float64(max(j.Duration, 60))
		s.slowdown += max(1, (delays[i]+float64(j.Duration))/took) / float64(len(p.jobs))
	}
	slices.Sort(delays)
	s.p95, s.longest = delays[len(delays)*95/100], delays[len(delays)-1]
	return s
}

func (s score) print(out io.Writer, name string, took time.Duration) {
	fmt.Fprintf(out, "%-24s %9.0f %9.0f %10.0f %9.2f %9.0f %6d %8s\n", name, s.mean, s.p95, s.longest, s.slowdown, s.lost,
		s.left, took.Round(100*time.Millisecond))
}

// printFigures prints the delays of each policy, and what parts of multifactor's they are.
func printFigures(out io.Writer, name string, scores map[string]score) {
	for _, a := range listArms() {
		s, played := scores[a.name]
		if !played {
			continue
		}
		fmt.Fprintf(out, "figure: jobs_%s_%s_wait_s %.0f s\n", name, a.name, s.mean)
		fmt.Fprintf(out, "figure: jobs_%s_%s_longest_s %.0f s\n", name, a.name, s.longest)
		if base, ok := scores["multifactor"]; ok && a.name != "multifactor" && base.mean > 0 {
			fmt.Fprintf(out, "figure: jobs_%s_%s_of_multifactor %.3f x\n", name, a.name, s.mean/base.mean)
			fmt.Fprintf(out, "figure: jobs_%s_%s_longest_of_multifactor %.3f x\n", name, a.name, s.longest/base.longest)
		}
	}
}
