package report

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// mostEarlier is how many of its keys before the newest a daemon remembers: those of eight days, as it renews them, and
// fewer where it began anew. A control plane takes any of them for a day.
const mostEarlier = 16

// keepEarlier remembers the key at hand, which another one is about to replace.
func (r *Reporter) keepEarlier() {
	if r.id.Key != "" {
		r.id.Earlier = append([]string{r.id.Key}, r.id.Earlier[:min(len(r.id.Earlier), mostEarlier-1)]...)
	}
}

// isUnknown reports whether the control plane does not know a key: it was ended, or came after the backup from which
// the control plane was restored.
func isUnknown(err error) bool {
	return isCode(err, contract.CodeUnauthenticated) || isCode(err, contract.CodeRecovering)
}

// tryEarlier reports with the keys before, the newest first, after the newest was refused. A control plane that was
// restored from a backup knows one of them, and work here must not end for want of it: the daemon goes on with that
// key, and has it renewed at once. Where none is known, it stays with the newest and its refusal.
func (r *Reporter) tryEarlier(ctx context.Context, now time.Time, refusal error) error {
	newest, earlier := r.id.Key, r.id.Earlier
	for i, key := range earlier {
		r.id.Key = key
		err := r.beat(ctx, now)
		if isUnknown(err) {
			continue
		}
		if err != nil {
			r.id.Key = newest
			return err
		}
		r.Log.WarnContext(ctx, "the control plane knows an earlier key of this daemon only: it was restored from a backup",
			"keys_since", i+1)
		r.id.Earlier, r.unsaved, r.renewAt = earlier[i+1:], true, now
		r.showKey()
		r.keepIdentity()
		return nil
	}
	r.id.Key = newest
	return refusal
}
