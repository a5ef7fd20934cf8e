package exec

import (
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// verb is what a script is asked to do.
type verb string

const (
	verbCreate verb = "create"
	verbGet    verb = "get"
	verbList   verb = "list"
	verbDelete verb = "delete"
	verbOffers verb = "offers"
	verbRenew  verb = "renew"
)

var verbs = []verb{verbCreate, verbGet, verbList, verbDelete, verbOffers, verbRenew}

// doubtKind is the kind of an answer that was lost or not understood: what may be
// true of the world then.
func (v verb) doubtKind() provisioners.Kind {
	switch v {
	case verbCreate, verbDelete, verbRenew:
		return provisioners.KindUnknown
	default:
		return provisioners.KindTransient
	}
}

// failedKind is the kind of a script that said by its exit code alone that it
// failed. Whether it made a machine before that, it did not say.
func (v verb) failedKind() provisioners.Kind {
	if v == verbCreate {
		return provisioners.KindUnknown
	}
	return provisioners.KindTransient
}

func (c Commands) commandOf(v verb) []string {
	return map[verb][]string{
		verbCreate: c.Create, verbGet: c.Get, verbList: c.List,
		verbDelete: c.Delete, verbOffers: c.Offers, verbRenew: c.Renew,
	}[v]
}

func (t Timeouts) timeoutOf(v verb) time.Duration {
	return map[verb]time.Duration{
		verbCreate: t.Create, verbGet: t.Get, verbList: t.List,
		verbDelete: t.Delete, verbOffers: t.Offers, verbRenew: t.Renew,
	}[v]
}
