package api

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// QueuePage is a part of a queue.
type QueuePage struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"500"`
	Cursor string `query:"cursor" maxLength:"200" doc:"next_cursor of the page before. The queue may have moved since."`
}

// listQueue shows a tenant its own jobs alone, with their places among all.
func listQueue(ctx context.Context, a *API, in *struct {
	OfOrganization
	QueuePage
	Pool string `query:"pool" maxLength:"64" required:"true" doc:"Id or name."`
},
) (out *ListOut[contract.Job], err error) {
	out = &ListOut[contract.Job]{Body: contract.List[contract.Job]{Items: []contract.Job{}}}
	after, err := parseCursor("queue", in.Cursor)
	if err != nil {
		return nil, err
	}
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		pool, err := a.resolvePool(ctx, r, in.Pool)
		if err != nil {
			return err
		}
		queue, err := a.Ledger.QueueOf(r, pool)
		if err != nil {
			return err
		}
		own := make([]ledger.QueuedJob, 0, len(queue))
		for _, q := range queue {
			if s.All || q.OrganizationID == s.OrganizationID {
				own = append(own, q)
			}
		}
		begin := placeAfter(own, after)
		page := own[begin:min(begin+in.Limit, len(own))]
		if end := begin + len(page); end < len(own) {
			out.Body.NextCursor = formatCursor("queue", strconv.Itoa(end)+"_"+own[end-1].ID)
		}
		if out.Body.Items, err = encodeQueued(r, page); err != nil {
			return err
		}
		return tellNoWorker(a, r, pool, out.Body.Items)
	})
	return out, err
}

// tellNoWorker takes back what is predicted of jobs that wait in a pool while no worker is there: what starts them runs
// in a worker.
func tellNoWorker(a *API, r ledger.Reader, poolID string, waiting []contract.Job) error {
	since, gone, err := noWorkerSince(a, r, poolID)
	if err != nil || !gone {
		return err
	}
	for i := range waiting {
		waiting[i].PredictedStart = nil
		waiting[i].Unpredicted = ledger.NoWorkerSince(since, r.Now()) + "; nothing is started before one is there"
	}
	return nil
}

// noWorkerSince reports whether no worker is there, and since when: since the pool was made, if none ever was.
func noWorkerSince(a *API, r ledger.Reader, poolID string) (since time.Time, gone bool, err error) {
	since, gone, err = a.Ledger.Waits(r).WorkersGone()
	if err != nil || !gone || !since.IsZero() {
		return since, gone, err
	}
	p, err := r.Pool(poolID)
	return p.CreatedAt, true, err
}

// placeAfter is where a queue goes on behind the job that a cursor names, or, if that waits no more, where it stood.
func placeAfter(queue []ledger.QueuedJob, cursor string) int {
	place, id, _ := strings.Cut(cursor, "_")
	at := slices.IndexFunc(queue, func(q ledger.QueuedJob) bool { return q.ID == id })
	if at >= 0 {
		return at + 1
	}
	was, _ := strconv.Atoi(place)
	return min(max(was, 0), len(queue))
}

// readAtOnce is how many jobs are read at once with their commands, which may be large.
const readAtOnce = 50

func encodeQueued(r ledger.Reader, page []ledger.QueuedJob) ([]contract.Job, error) {
	out := make([]contract.Job, 0, len(page))
	for some := range slices.Chunk(page, readAtOnce) {
		ids := make([]string, 0, len(some))
		for _, q := range some {
			ids = append(ids, q.ID)
		}
		whole, err := r.JobsByID(ids)
		if err != nil {
			return nil, err
		}
		for _, q := range some {
			if j, there := whole[q.ID]; there {
				out = append(out, tellWhy(encodeListed(j), map[string]ledger.QueuedJob{q.ID: q}))
			}
		}
	}
	return out, nil
}
