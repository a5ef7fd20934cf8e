package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// Filter narrows a list. Zero fields do not narrow.
type Filter struct {
	Organization string   // id or name
	Pool         string   // id or name
	State        []string // any of them
	All          bool     // also what is over
	// Name, User (an id or e-mail address), Since and Until are of bookings. With a
	// time, those that are over are listed too.
	Name, User   string
	Schedule     string // id or name; of reservations
	Since, Until time.Time
	Used         bool // of allocations: with UsedUntil, which takes longer
	PageSize     int  // how many a request asks for; the server's default when zero
}

func (f Filter) query() url.Values {
	q := url.Values{}
	if f.Organization != "" {
		q.Set("organization", f.Organization)
	}
	if f.Pool != "" {
		q.Set("pool", f.Pool)
	}
	if len(f.State) > 0 {
		q.Set("state", strings.Join(f.State, ","))
	}
	if f.All {
		q.Set("all", "true")
	}
	if f.Used {
		q.Set("used", "true")
	}
	for name, value := range map[string]string{"name": f.Name, "user": f.User, "schedule": f.Schedule} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.PageSize > 0 {
		q.Set("limit", strconv.Itoa(f.PageSize))
	}
	return q
}

// listItems goes through all pages of a collection.
func listItems[T any](ctx context.Context, c *Client, f Filter, path ...string) iter.Seq2[T, error] {
	return listPages[T](ctx, c, f.query(), path...)
}

// listPages goes through all pages. It ends after the first error, which it yields
// with a zero item.
func listPages[T any](ctx context.Context, c *Client, first url.Values, path ...string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := maps.Clone(first)
		for {
			page, err := callFor[contract.List[T]](ctx, c, call{method: http.MethodGet, path: path, query: q})
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			q.Set("cursor", page.NextCursor)
		}
	}
}

// All collects a list. It returns what it got before an error, and the error.
func All[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, item)
	}
	return all, nil
}
