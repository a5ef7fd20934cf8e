package api

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkDecodeBatch is one batch of 10,000 requests, as bench/batch sends them.
func BenchmarkDecodeBatch(b *testing.B) {
	a := newBatchAPI()
	items := make([]string, 10_000)
	for i := range items {
		items[i] = fmt.Sprintf(`{"pool":"lab","gpus":1,"start":"2026-03-02T10:%02d:00Z",`+
			`"end":"2026-03-02T11:00:00Z","name":"job %d"}`, i%60, i)
	}
	body := []byte("[" + strings.Join(items, ",") + "]")
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if batch, err := decodeBatch(a, reservationItems(a.Clock.Now()), body); err != nil || batch[0].Invalid != nil {
			b.Fatal(err, batch[0].Invalid)
		}
	}
}
