package main

import (
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forewarm/forewarm/bench/traces"
	"github.com/forewarm/forewarm/core/backtest"
)

const header = "job_id,user,group,submit_ts,duration_s,gpus,status\n"

func writeTrace(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if strings.HasSuffix(name, ".gz") {
		z := gzip.NewWriter(file)
		defer z.Close()
		fmt.Fprint(z, content)
		return path
	}
	fmt.Fprint(file, content)
	return path
}

func TestReadTrace(t *testing.T) {
	t.Parallel()
	const rows = header + "a,,red,100,60,2,\nb,,blue,100,5,1,\nc,,red,160,1,8,\n"
	want := []backtest.Job{
		{ID: "a", Submit: 100, Duration: 60, GPUs: 2}, {ID: "b", Submit: 100, Duration: 5, GPUs: 1, Tenant: 1},
		{ID: "c", Submit: 160, Duration: 1, GPUs: 8},
	}
	for _, name := range []string{"plain.csv", "packed.csv.gz"} {
		trace, err := traces.Read(writeTrace(t, name, rows))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if fmt.Sprint(trace.Tenants, trace.Jobs) != fmt.Sprint([]string{"red", "blue"}, want) {
			t.Errorf("%s: %v %v", name, trace.Tenants, trace.Jobs)
		}
	}
	for name, rows := range map[string]string{
		"empty": "", "no jobs": header, "a word": header + "a,,red,soon,60,2,\n", "too few columns": "a,b\nc,d\n",
		"out of order": header + "a,,red,100,60,2,\nb,,red,99,60,2,\n",
	} {
		if _, err := traces.Read(writeTrace(t, "bad.csv", rows)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// drawnTrace has bursts of jobs of a few tenants over some days.
func drawnTrace(seed uint64, days int64, tenants ...string) backtest.Trace {
	chance := rand.New(rand.NewPCG(seed, 0))
	t := backtest.Trace{Tenants: tenants}
	for now := int64(1_600_000_020); now < 1_600_000_020+days*86400; {
		now += 1 + int64(chance.ExpFloat64()*2400)
		tenant := chance.IntN(len(tenants))
		for range 1 + chance.IntN(4) {
			now += chance.Int64N(90)
			t.Jobs = append(t.Jobs, backtest.Job{
				ID: fmt.Sprint("job", len(t.Jobs)), Submit: now, Duration: 1 + int64(chance.ExpFloat64()*3000),
				GPUs: 1 << chance.IntN(4), Tenant: tenant,
			})
		}
	}
	return t
}

func TestWithoutLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	whole := drawnTrace(1, 1, "a", "b", "c", "d")
	sparse, ok := withoutTenants(whole, []string{"a", "c"})
	if !ok || fmt.Sprint(sparse.Tenants) != "[b d]" {
		t.Fatalf("%v, tenants %v", ok, sparse.Tenants)
	}
	n := 0
	for _, j := range whole.Jobs {
		name := whole.Tenants[j.Tenant]
		if name == "a" || name == "c" {
			continue
		}
		if got := sparse.Jobs[n]; got.ID != j.ID || sparse.Tenants[got.Tenant] != name {
			t.Fatalf("job %d is %s of %s, want %s of %s", n, got.ID, sparse.Tenants[got.Tenant], j.ID, name)
		}
		n++
	}
	if n != len(sparse.Jobs) {
		t.Errorf("%d jobs, want %d", len(sparse.Jobs), n)
	}
	if _, ok := withoutTenants(whole, []string{"a", "z"}); ok {
		t.Error("a trace that lacks one of the tenants has a sparse one")
	}
}

func TestPooledTenantsShareAllUnits(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a", "b"}, Jobs: []backtest.Job{
		{ID: "1", Submit: 0, Duration: 60, GPUs: 1}, {ID: "2", Submit: 300, Duration: 60, GPUs: 1},
		{ID: "3", Submit: 400, Duration: 60, GPUs: 1, Tenant: 1},
	}}
	apart, err := backtest.Run(trace, backtest.Options{Boot: 300, KeepAlive: 300})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := backtest.Run(poolTenants(trace), backtest.Options{Boot: 300, KeepAlive: 300})
	if err != nil {
		t.Fatal(err)
	}
	if shared.Mean >= apart.Mean {
		t.Errorf("sharing: %v s, apart: %v s", shared.Mean, apart.Mean)
	}
	if trace.Jobs[2].Tenant != 1 {
		t.Error("the trace itself was changed")
	}
}
