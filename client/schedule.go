package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// CreateSchedule makes a schedule. Its answer says what the coming dates got. Of
// the options, DryRun counts.
func (c *Client) CreateSchedule(ctx context.Context, in contract.ScheduleCreate, o Options) (contract.Schedule, error) {
	return callFor[contract.Schedule](ctx, c,
		call{method: http.MethodPost, path: []string{"schedules"}, query: o.query(),
			body: in})
}

// Schedule reads a schedule.
func (c *Client) Schedule(ctx context.Context, id string) (contract.Schedule, error) {
	return callFor[contract.Schedule](ctx, c, call{method: http.MethodGet, path: []string{"schedules", id}})
}

// Schedules lists schedules.
func (c *Client) Schedules(ctx context.Context, f Filter) iter.Seq2[contract.Schedule, error] {
	return listItems[contract.Schedule](ctx, c, f, "schedules")
}

// DeleteSchedule ends a schedule. Its answer says how many reservations were
// cancelled.
func (c *Client) DeleteSchedule(ctx context.Context, id string) (contract.Schedule, error) {
	return callFor[contract.Schedule](ctx, c, call{method: http.MethodDelete, path: []string{"schedules", id}})
}

// PauseSchedule stops a schedule from making reservations, or lets it go on.
func (c *Client) PauseSchedule(ctx context.Context, id string, paused bool) (contract.Schedule, error) {
	action := "resume"
	if paused {
		action = "pause"
	}
	return callFor[contract.Schedule](ctx, c, call{method: http.MethodPost, path: []string{"schedules", id, action}})
}

// Occurrences lists the dates of a schedule that start in [from, to), and what
// became of each; zero times leave the server's default, the next few from now.
func (c *Client) Occurrences(ctx context.Context, id string, from, to time.Time) ([]contract.Occurrence, error) {
	page, err := callFor[contract.List[contract.Occurrence]](ctx, c, call{method: http.MethodGet,
		path: []string{"schedules", id, "occurrences"}, query: periodQuery(from, to)})
	return page.Items, err
}

// Report adds up a period; zero times leave the server's default of seven days
// until now.
func (c *Client) Report(ctx context.Context, from, to time.Time) (contract.Report, error) {
	return callFor[contract.Report](ctx, c, call{method: http.MethodGet, path: []string{"reports", "summary"},
		query: periodQuery(from, to)})
}

// Costs divides what machines cost in a period; zero times leave the server's
// default of seven days until now. by is empty, pool or provisioner: what has
// lines of its own.
func (c *Client) Costs(ctx context.Context, from, to time.Time, by string) (contract.CostReport, error) {
	q := periodQuery(from, to)
	if by != "" {
		q.Set("by", by)
	}
	return callFor[contract.CostReport](ctx, c,
		call{method: http.MethodGet, path: []string{"reports", "costs"}, query: q})
}

func periodQuery(from, to time.Time) url.Values {
	q := url.Values{}
	if !from.IsZero() {
		q.Set("from", from.UTC().Format(time.RFC3339Nano))
	}
	if !to.IsZero() {
		q.Set("to", to.UTC().Format(time.RFC3339Nano))
	}
	return q
}
