//go:build clouds

package kubernetes

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// serverDate is when the API server gave its first answer to the calls of a context, by its
// own clock, to the second and rounded down.
type serverDate struct{ at atomic.Pointer[time.Time] }

type serverDateKey struct{}

// withServerDate returns a context whose calls note that time.
func withServerDate(ctx context.Context) (context.Context, *serverDate) {
	date := &serverDate{}
	return context.WithValue(ctx, serverDateKey{}, date), date
}

// orElse returns the time, or another where no server has said any.
func (d *serverDate) orElse(other time.Time) time.Time {
	if at := d.at.Load(); at != nil {
		return *at
	}
	return other
}

func noteDate(ctx context.Context, header http.Header) {
	date, wanted := ctx.Value(serverDateKey{}).(*serverDate)
	if !wanted {
		return
	}
	if at, err := http.ParseTime(header.Get("Date")); err == nil {
		at = at.UTC()
		date.at.CompareAndSwap(nil, &at)
	}
}
