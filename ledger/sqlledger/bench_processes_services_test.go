//go:build services

package sqlledger_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// BenchmarkProcesses has processes take turns at booking in one pool with 10,000
// live reservations, 8 requests at a time. Each finds what the others have changed.
func BenchmarkProcesses(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			address := createDatabase(b)
			var processes []*verbs.Ledger
			for range n {
				store, err := sqlledger.Open(b.Context(), sqlledger.Config{URL: address, MaxConns: 8})
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, store.Close()) })
				require.NoError(b, store.Migrate(b.Context()))
				processes = append(processes, verbs.New(store, ids.UUID{}, ledger.Config{Ahead: 60 * 24 * time.Hour}))
			}
			who := fillPool(b, processes[0], "big", 10000)
			var turn atomic.Int64
			b.SetParallelism(4) // times the processors
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := turn.Add(1)
					_, err := processes[int(i)%n].Reserve(b.Context(), who, hourRequest("big", i))
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "bookings/s")
		})
	}
}

// BenchmarkBeside books one GPU at a time in a pool, beside what others book without
// pause: nothing, one GPU at a time, batches of 1,000, or both. One process does all.
func BenchmarkBeside(b *testing.B) {
	for name, beside := range map[string]struct {
		pool  string // where is booked: the others book in the big one
		sizes []int  // of what each of the others books at a time
	}{
		"nothing":             {pool: "small"},
		"other-pool/singles":  {pool: "small", sizes: []int{1}},
		"other-pool/batches":  {pool: "small", sizes: []int{1000, 1000}},
		"other-pool/both":     {pool: "small", sizes: []int{1, 1000, 1000}},
		"same-pool/singles":   {pool: "big", sizes: []int{1}},
		"same-pool/a-batcher": {pool: "big", sizes: []int{1000}},
		"same-pool/batches":   {pool: "big", sizes: []int{1000, 1000}},
	} {
		b.Run(name, func(b *testing.B) {
			store, err := sqlledger.Open(b.Context(), sqlledger.Config{URL: createDatabase(b), MaxConns: 8})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, store.Close()) })
			require.NoError(b, store.Migrate(b.Context()))
			l := verbs.New(store, ids.UUID{}, ledger.Config{Ahead: 60 * 24 * time.Hour})
			who := fillPool(b, l, "big", 1000)
			other := fillPool(b, l, "small", 1000)
			stop := make(chan struct{})
			var others sync.WaitGroup
			for _, size := range beside.sizes {
				others.Go(func() { bookUntil(b, l, who, size, stop) })
			}
			var took []time.Duration
			for i := int64(0); b.Loop(); i++ {
				began := time.Now()
				_, err := l.Reserve(b.Context(), other, hourRequest(beside.pool, i))
				took = append(took, time.Since(began))
				require.NoError(b, err)
			}
			close(stop)
			others.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// bookUntil books batches of a size in the big pool until it is told to stop.
func bookUntil(b *testing.B, l *verbs.Ledger, who ledger.Actor, size int, stop <-chan struct{}) {
	for at := 0; ; at += size {
		select {
		case <-stop:
			return
		default:
			bookBatch(b, l, who, "big", at, size)
		}
	}
}

// fillPool makes a pool of 10,000 GPUs with n bookings.
func fillPool(b *testing.B, l *verbs.Ledger, name string, n int) ledger.Actor {
	b.Helper()
	operator := ledger.SystemActor("bench")
	_, err := l.CreatePool(b.Context(), operator, capacity.Pool{Name: name, Provisioner: "sim", Type: "gpu-8",
		Model: "h100", PerNode: 8, MemoryMiB: 81920, MaxNodes: 1250, Simulated: true,
		Timers: capacity.Timers{MaxLease: 24 * time.Hour}}, learned.BootTimes{})
	require.NoError(b, err)
	org, err := l.CreateOrganization(b.Context(), operator, "owner of "+name, quota.Limits{GPUs: 10000})
	require.NoError(b, err)
	who := ledger.Actor{KeyID: name, Kind: ledger.PersonKey, OrganizationID: org.ID, Role: ledger.Member}
	for at := 0; at < n; at += 1000 {
		bookBatch(b, l, who, name, at, 1000)
	}
	return who
}

func bookBatch(b *testing.B, l *verbs.Ledger, who ledger.Actor, pool string, at, size int) {
	var batch []ledger.BatchItem
	for i := range size {
		batch = append(batch, ledger.BatchItem{Request: hourRequest(pool, int64(at+i))})
	}
	results, err := l.ReserveMany(b.Context(), who, batch)
	if err != nil {
		b.Error(err)
	}
	for _, r := range results {
		if r.Err != nil {
			b.Error(r.Err)
			return
		}
	}
}

// hourRequest asks for one GPU for an hour, on one of 30 days.
func hourRequest(pool string, i int64) ledger.ReserveRequest {
	start := time.Now().Truncate(time.Hour).Add(time.Duration(24+i*7%720) * time.Hour)
	return ledger.ReserveRequest{Pool: pool, GPUs: 1, Window: calendar.Interval{Start: start, End: start.Add(time.Hour)}}
}
