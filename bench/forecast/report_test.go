package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/forewarm/forewarm/core/backtest"
)

func csvOf(t backtest.Trace) string {
	var b strings.Builder
	b.WriteString(header)
	for _, j := range t.Jobs {
		fmt.Fprintf(&b, "%s,,%s,%d,%d,%d,\n", j.ID, t.Tenants[j.Tenant], j.Submit, j.Duration, j.GPUs)
	}
	return b.String()
}

func TestBenchmarkPrintsTheSameFiguresTwice(t *testing.T) {
	t.Parallel()
	c := config{
		traces: []string{writeTrace(t, "small.csv", csvOf(drawnTrace(5, 2, "a")))}, boots: []int64{120},
		channels: []channel{{0.6, 0.5}}, worths: []float64{32},
	}
	var out [2]bytes.Buffer
	for i := range out {
		if err := runBenchmark(context.Background(), &out[i], c); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) {
		t.Error("two runs differ")
	}
	for _, want := range []string{
		"figure: small_boot120_reactive_wait ", "figure: small_boot120_keepalive_wait_at_20 ",
		"figure: small_boot120_ewma_wait_at_20 ", "figure: small_boot120_reference_gap_closed_r32 ",
		"figure: small_evidence_60_50_reference_wait_at_20 ", "Forewarm's prior: built in",
		"figure: small_boot120_gap_closed_r32 ",
		"figure: small_boot120_forewarm_cold_gap_closed_r32 ", "figure: small_boot120_forewarm_coverage_80 ",
		"figure: small_evidence_60_50_gap_closed_r32 ",
	} {
		if !strings.Contains(out[0].String(), want) {
			t.Errorf("no line begins with %q in\n%s", want, out[0].String())
		}
	}
	for family, wrong := range map[string]string{"one that reads no messages": "small_evidence_60_50_keepalive",
		"one without a setting": "small_boot120_uplift", "an ablation": "no_hazard"} {
		if strings.Contains(out[0].String(), wrong) {
			t.Errorf("%s is in the report", family)
		}
	}
}

func TestBenchmarkStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := config{traces: []string{writeTrace(t, "small.csv", csvOf(drawnTrace(5, 1, "a")))}, boots: []int64{300}}
	if err := runBenchmark(ctx, new(bytes.Buffer), c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestWrongChannelsAreRefused(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"0.6", "0.6/0", "1.2/0.5", "a/b", "0.6/0.5/0.5x,"} {
		var wrong usageError
		if got, err := parseChannels(list); !errors.As(err, &wrong) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	got, err := parseChannels("0.6/0.5,1/0.1")
	if err != nil || len(got) != 2 || got[1] != (channel{1, 0.1}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestNoTraceIsExplained(t *testing.T) {
	t.Parallel()
	if _, err := listTraces(","); !errors.Is(err, noTraces) {
		t.Errorf("error %v, want what to pass", err)
	}
	if _, err := listTraces(t.TempDir()); !errors.Is(err, noTraces) {
		t.Errorf("an empty folder: error %v, want what to pass", err)
	}
}
