package booking

import (
	"slices"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// offspring lists, for each of the caps that hold for an asker, the ids under
// which is counted what they are about: a key's caps hold for all that was made
// with it, together. An empty list is the key or the person alone.
type offspring struct {
	key, user []string
	makers    [][]string // as asker.makers
}

// offspringOf looks up whose bookings count for the caps of an asker. Without
// caps nothing is asked: that is the way of most bookings, an agent's among them,
// whose key makes no others.
//
// What is read here need not be locked. A key that is made later books later,
// under the organization's lock, which the transaction holds or is about to check.
func offspringOf(tx *txn.Tx, who ledger.Asker) (offspring, error) {
	var o offspring
	var err error
	if who.Key != nil && who.MayMake {
		o.key, err = tx.Port.Offspring(ledger.KeyRoot{KeyID: who.KeyID})
	}
	if err == nil && who.User != nil {
		o.user, err = tx.Port.Offspring(ledger.KeyRoot{UserID: who.UserID})
	}
	for _, bound := range who.Makers {
		if err != nil {
			return o, err
		}
		var ids []string
		ids, err = tx.Port.Offspring(bound.KeyRoot)
		o.makers = append(o.makers, ids)
	}
	return o, err
}

// addCaps sets which caps hold for the holding's asker, and what counts for each.
func (h *holding) addCaps(v *admission.View) {
	c := h.commitments
	v.Key = admission.Capped{Caps: h.who.Key, Spent: c.ByKey[h.who.KeyID]}
	if len(h.offspring.key) > 1 {
		v.Key.Spent = c.SumOf(h.offspring.key)
	}
	v.User = admission.Capped{Caps: h.who.User, Spent: c.ByUser[h.who.UserID]}
	if len(h.offspring.user) > 0 {
		v.User.Spent = c.SumOf(h.offspring.user)
	}
	for i := range h.who.Makers {
		v.Makers = append(v.Makers, admission.Capped{Caps: &h.who.Makers[i].Caps,
			Spent: c.SumOf(h.offspring.makers[i])})
	}
}

// countToo has what a new schedule books count for the caps that it is under.
func (h *holding) countToo(id string) {
	for i, ids := range h.offspring.makers {
		h.offspring.makers[i] = append(slices.Clone(ids), id)
	}
}
