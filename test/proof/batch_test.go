package proof_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// batchItems is how many requests a batch of these tests holds.
const batchItems = 500

// hourAfter is the n-th hour from the day after tomorrow.
func hourAfter(n int) (start, end time.Time) {
	start = time.Now().UTC().Truncate(time.Hour).Add(time.Duration(48+n) * time.Hour)
	return start, start.Add(time.Hour)
}

// requestLine is one GPU over the n-th hour, as a line of a batch.
func requestLine(n int) string {
	start, end := hourAfter(n)
	return fmt.Sprintf(`{"pool":"lab","gpus":1,"start":%q,"end":%q}`, start.Format(time.RFC3339),
		end.Format(time.RFC3339))
}

func repeatLine(line string, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line
	}
	return lines
}

func jsonArray(lines []string) string   { return "[" + strings.Join(lines, ",") + "]" }
func ndjsonLines(lines []string) string { return strings.Join(lines, "\n") + "\n" }

// sendBatch sends one batch until it is answered, and returns the answer as it came.
func (s *site) sendBatch(t *testing.T, server int, key, contentType, body string) []byte {
	for limit := time.Now().Add(patience); ; {
		status, data, err := s.postBatch(t.Context(), server, key, contentType, body)
		if status == http.StatusOK {
			return data
		}
		again := status == http.StatusGatewayTimeout || status == http.StatusServiceUnavailable
		if !again || time.Now().After(limit) {
			assert.Fail(t, "the batch has no answer", "%v, status %d: %.300s", err, status, data)
			return nil
		}
	}
}

func (s *site) postBatch(ctx context.Context, server int, key, contentType,
	body string) (status int, data []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.urls[server]+"/v1/reservations/batch",
		strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", contentType)
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err = io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

// decodeResults decodes an answer and checks its sums.
func decodeResults(t *testing.T, data []byte, items int) contract.BatchResults {
	t.Helper()
	var out contract.BatchResults
	require.NoError(t, json.Unmarshal(data, &out))
	require.Len(t, out.Items, items)
	accepted := 0
	for i, item := range out.Items {
		require.Equal(t, i, item.Index)
		if item.ID != "" {
			accepted++
		}
	}
	require.Equal(t, accepted, out.Accepted)
	require.Equal(t, items-accepted, out.Refused)
	return out
}

// testBatches sends batches at the edge of the quota, to every server at once: in
// both forms, each twice under its key.
func testBatches(t *testing.T, url string, servers int) {
	t.Helper()
	s := newSite(t, url, want{servers: servers, nodes: 40, perNode: 8, quota: edgeQuota})
	answers := make([][]byte, 4*servers)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			key := fmt.Sprintf("batch-%d", i/2)
			if i/2%2 == 0 {
				answers[i] = s.sendBatch(t, i%servers, key, "application/json",
					jsonArray(repeatLine(requestLine(0), batchItems)))
			} else {
				answers[i] = s.sendBatch(t, i%servers, key, "application/x-ndjson",
					ndjsonLines(repeatLine(requestLine(0), batchItems)))
			}
		})
	}
	wait.Wait()
	admitted := map[string]bool{}
	for i := 0; i < len(answers); i += 2 {
		require.True(t, bytes.Equal(answers[i], answers[i+1]), "the same batch again is answered the same")
		for _, item := range decodeResults(t, answers[i], batchItems).Items {
			if item.ID != "" {
				require.Equal(t, http.StatusCreated, item.Status)
				admitted[item.ID] = true
			} else {
				require.Equal(t, contract.CodeQuotaExceeded, item.Code)
			}
		}
	}
	require.Len(t, admitted, edgeQuota)
	rows := s.readRows(true)
	require.Len(t, rows.Pools[0].Reservations, edgeQuota)
	for _, r := range rows.Pools[0].Reservations {
		require.True(t, admitted[r.ID], "%s is stored and was not acknowledged", r.ID)
	}
	s.requireSound()
}

// TestBatchItemsStandAlone: a request of a batch that cannot be right takes
// nothing from the others.
func TestBatchItemsStandAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, "sqlite://:memory:", want{servers: 1, nodes: 10, perNode: 8, quota: 80})
	lines := repeatLine(requestLine(0), 3)
	lines[1] = strings.Replace(requestLine(0), `"gpus":1`, `"gpus":0`, 1)
	out := decodeResults(t, s.sendBatch(t, 0, "once", "application/json", jsonArray(lines)), 3)
	require.Equal(t, 2, out.Accepted)
	require.Empty(t, out.Items[1].ID)
	require.GreaterOrEqual(t, out.Items[1].Status, 400)
	require.NotEmpty(t, out.Items[1].Code)
	require.Len(t, s.readRows(false).Pools[0].Reservations, 2)
}

// TestBatchesSQLite: one server, SQLite.
func TestBatchesSQLite(t *testing.T) {
	t.Parallel()
	testBatches(t, "sqlite://:memory:", 1)
}
