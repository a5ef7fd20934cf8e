package load

import (
	"context"
	"time"
)

// tide has everybody come and go together: when demand falls, machines are
// given back, and when it rises, others are made. A demand that is always the
// same would keep the same few machines.
//
// The zero tide is always high.
type tide struct{ since time.Time }

const (
	flood = 14 * time.Second
	ebb   = 9 * time.Second
)

// awaitFlood waits until it is time to work, and reports whether it is: false when ctx
// has ended.
func (t tide) awaitFlood(ctx context.Context) bool {
	if t.since.IsZero() {
		return ctx.Err() == nil
	}
	if into := time.Since(t.since) % (flood + ebb); into >= flood {
		waitFor(ctx, flood+ebb-into)
	}
	return ctx.Err() == nil
}
