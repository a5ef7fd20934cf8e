package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRegretIsAgainstTheCheapestExpert(t *testing.T) {
	t.Parallel()
	for ours, want := range map[float64]float64{100: 25, 80: 0, 60: -25} {
		if got := regret(ours, map[string]float64{"nothing": 200, "own": 80, "keep/1": 90}); got != want {
			t.Errorf("a cost of %v against 80 is a regret of %v %%, want %v %%", ours, got, want)
		}
	}
}

func TestRegretsOfARegimeArePrinted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := config{regimes: []string{"notebook"}, regret: true, boots: []int64{300}, policies: []string{"forewarm", "solo"},
		worths: []float64{8}}
	if err := runBenchmark(context.Background(), &out, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"figure: notebook_regret_r8 ", "figure: notebook_regret_early_r8 ", "own*4",
		"mean regret "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "regret_r32") {
		t.Error("there is a regret at a price that was not asked for")
	}
}

func TestAnUnknownRegimeIsRefused(t *testing.T) {
	t.Parallel()
	var wrong usageError
	if _, err := listRegimes("notebook,holidays"); !errors.As(err, &wrong) || !strings.Contains(string(wrong), "cron") {
		t.Errorf("error %v, want one that names the regimes", err)
	}
	if all, err := listRegimes("all"); err != nil || len(all) < 10 {
		t.Errorf("%d regimes, error %v", len(all), err)
	}
}
