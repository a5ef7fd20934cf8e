package evidence_test

import (
	"testing"

	"github.com/forewarm/forewarm/core/evidence"
)

// BenchmarkRecord is one record from its arrival to its judgement.
func BenchmarkRecord(b *testing.B) {
	book := newTrackRecords(b, evidence.Config{Allowance: 1e6})
	r, at, out := believableRecord(), userTerms(), newOutcome(true)
	b.ReportAllocs()
	for b.Loop() {
		w := evidence.NewWatch(at.Boot)
		d, err := book.Consider(noon, "x", r, at)
		if err != nil {
			b.Fatal(err)
		}
		w.Open(d.From, "x", r, d)
		w.Submit(r.Start, 4)
		if _, ok := w.Close(d.Until, "x"); !ok {
			b.Fatal("not open")
		}
		if err := book.Close(d.Until, "x", out); err != nil {
			b.Fatal(err)
		}
		book.Score(r, 0.2, true)
	}
}
