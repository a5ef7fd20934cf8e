package ledger

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"
)

// FailedLogin is how often somebody failed to prove who they are, in a time. The
// zero From stands for everybody who is not listed.
type FailedLogin struct {
	Door         string // where: api, page, link
	KeyPrefix    string // of the key, without its secret; empty for what is no key
	From         netip.Addr
	Count        int
	Since, Until time.Time
}

// Compare orders by number, the most first, and then by what is known of them;
// those who are not told apart come last.
func (f FailedLogin) Compare(o FailedLogin) int {
	if f.From.IsValid() != o.From.IsValid() {
		if f.From.IsValid() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(o.Count, f.Count), f.From.Compare(o.From), cmp.Compare(f.KeyPrefix, o.KeyPrefix),
		cmp.Compare(f.Door, o.Door))
}

// EventSubject is what the event is about: the key that was tried, or the
// address.
func (f FailedLogin) EventSubject() string {
	if f.KeyPrefix == "" && f.From.IsValid() {
		return f.From.String()
	}
	return f.KeyPrefix
}

// EventText tells of the failed sign-ins in a sentence.
func (f FailedLogin) EventText() string {
	from := "addresses that are not listed"
	if f.From.IsValid() {
		from = f.From.String()
	}
	return fmt.Sprintf("%d from %s since %s", f.Count, from, f.Since.UTC().Format(time.TimeOnly))
}
