package regimes

import (
	"fmt"
	"slices"
	"testing"
)

func TestRegimesAreSoundSmallAndFixed(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, r := range All() {
		first, second, other := r.Trace(Seed), r.Trace(Seed), r.Trace(Seed+1)
		if err := first.Validate(); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		if !slices.Equal(first.Jobs, second.Jobs) || !slices.Equal(first.Tenants, second.Tenants) {
			t.Errorf("%s differs from draw to draw", r.Name)
		}
		if slices.Equal(first.Jobs, other.Jobs) {
			t.Errorf("%s is the same with another seed", r.Name)
		}
		if n := len(first.Jobs); n < 300 || n > 12_000 || names[r.Name] {
			t.Errorf("%s: %d jobs, want 300 to 12,000 of a regime of its own name", r.Name, n)
		}
		names[r.Name] = true
		t.Log(describe(first.Jobs[0].Submit, first.Jobs[len(first.Jobs)-1].Submit, len(first.Jobs), r.Name))
	}
	if len(names) < 10 {
		t.Errorf("%d regimes, want at least 10", len(names))
	}
}

func TestRetriesComeAfterFailures(t *testing.T) {
	t.Parallel()
	w := newWorkload("resubmission", Seed)
	drawResubmission(w)
	jobs := w.trace().Jobs
	retries := 0
	for i, j := range jobs {
		if j.After == 0 {
			continue
		}
		retries++
		if first := jobs[j.After-1]; !first.Failed || first.Class != j.Class || first.GPUs != j.GPUs {
			t.Fatalf("job %d comes after %+v, want a failure of its like", i, first)
		}
	}
	if retries < len(jobs)/2 {
		t.Errorf("%d retries of %d jobs, want more than half", retries, len(jobs))
	}
}

func describe(from, to int64, jobs int, name string) string {
	return fmt.Sprintf("%-13s %5d jobs in %2d days", name, jobs, (to-from)/86400)
}

func TestServicesFollowTheDay(t *testing.T) {
	t.Parallel()
	w := newWorkload("services", Seed)
	drawServices(w)
	trace := w.trace()
	night, noon := 0, 0
	for _, j := range trace.Jobs {
		for _, at := range []int64{begin + 8*86400, begin + 8*86400 + 12*3600} {
			if j.Submit <= at && j.Submit+j.Duration > at {
				if at%86400 == 0 {
					night += j.GPUs
				} else {
					noon += j.GPUs
				}
			}
		}
	}
	if noon < 2*night {
		t.Errorf("%d GPUs at noon and %d at midnight, want a day", noon, night)
	}
}
