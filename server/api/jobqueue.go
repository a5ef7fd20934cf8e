package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

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
		out.Body.Items, err = encodeQueued(r, page)
		return err
	})
	return out, err
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
