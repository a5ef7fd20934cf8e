package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// bookBatch books several windows at once, some minutes ahead, and cancels some of
// them. The SDK has no batches, so the request is built here.
func (p *person) bookBatch(ctx context.Context, name string) {
	items := make([]contract.ReservationCreate, 3+p.chance.IntN(10))
	for i := range items {
		start := time.Now().UTC().Add(time.Duration(20+p.chance.IntN(300)) * time.Second)
		items[i] = contract.ReservationCreate{
			Pool: p.drawPool(), GPUs: p.drawGPUs(), Start: start,
			End:  start.Add(time.Duration(5+p.chance.IntN(20)) * time.Second),
			Name: fmt.Sprintf("%s-%d", name, i),
		}
	}
	body, err := json.Marshal(items)
	if err != nil {
		p.journal.recordStrange("encoding a batch: " + err.Error())
		return
	}
	results, ok := askUntilAnswered(ctx, p.caller, request[contract.BatchResults]{Batch, name,
		func(ctx context.Context, c *client.Client) (contract.BatchResults, error) {
			return p.batches.sendBatch(ctx, c, name, body)
		}, joinIDs})
	if !ok {
		return
	}
	for i, r := range results.Items {
		if r.ID == "" {
			continue
		}
		p.recordEffect(Entry{Op: Batch, ID: r.ID, Name: items[i].Name})
		if p.chance.IntN(3) > 0 {
			p.cancelReservation(ctx, r.ID, items[i].Name)
		}
	}
}

func joinIDs(r contract.BatchResults) string {
	var all []string
	for _, item := range r.Items {
		all = append(all, item.ID)
	}
	return strings.Join(all, " ")
}

// batchClient sends what the SDK has no method for.
type batchClient struct {
	key  string
	http client.Doer
	urls map[*client.Client]string
}

func (d batchClient) sendBatch(ctx context.Context, c *client.Client, key string, body []byte) (
	contract.BatchResults, error) {
	var out contract.BatchResults
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.urls[c]+"/v1/reservations/batch",
		bytes.NewReader(body))
	if err != nil {
		return out, fmt.Errorf("building a batch: %w", err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Authorization": {"Bearer " + d.key},
		contract.HeaderIdempotencyKey: {key},
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return out, fmt.Errorf("sending a batch: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, fmt.Errorf("reading the answer to a batch: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		e := &client.Error{}
		if json.Unmarshal(answer, &e.Problem) != nil {
			e.Problem.Title = string(answer)
		}
		e.Problem.Status = resp.StatusCode
		return out, e
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("decoding the answer to a batch: %w", err)
	}
	return out, nil
}
