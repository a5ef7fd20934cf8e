package ledger

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/phrase"
)

// InUseError says that something cannot be deleted yet, with everything that is
// still there.
type InUseError struct {
	Subject string // such as: pool lab
	In      []Use
}

// Use is one kind of thing that keeps something from being deleted.
type Use struct {
	Noun  string   // plural: nodes, reservations, allocations, schedules
	Count int      // at most 500 are counted
	IDs   []string // the first few
}

// Text is how many there are, in words.
func (u Use) Text() string { return phrase.Count(u.Count, strings.TrimSuffix(u.Noun, "s")) }

// Error names what is still there.
func (e *InUseError) Error() string {
	parts := make([]string, len(e.In))
	for i, use := range e.In {
		parts[i] = use.Text()
	}
	return fmt.Sprintf("%s still has %s", e.Subject, strings.Join(parts, ", "))
}

// shownInUse is how many ids of a kind an InUseError names.
const shownInUse = 5

// Remains collects what is there of each kind.
type Remains []Use

// Add puts down what is still there of a noun.
func (in *Remains) Add(noun string, ids []string) {
	if len(ids) > 0 {
		*in = append(*in, Use{Noun: noun, Count: len(ids), IDs: ids[:min(len(ids), shownInUse)]})
	}
}

// InUseError is *InUseError if anything is still there, else nil.
func (in Remains) InUseError(subject string) error {
	if len(in) == 0 {
		return nil
	}
	return &InUseError{Subject: subject, In: in}
}

// LivePool reads a pool by id or name. One that is deleted is ErrNotFound.
func LivePool(r Reader, idOrName string) (Pool, error) {
	p, err := r.Pool(idOrName)
	if err == nil && !p.DeletedAt.IsZero() {
		return Pool{}, ErrNotFound
	}
	return p, err
}

// ObservedPools lists the observed pools of a provisioner, in the order of their ids; the
// empty name has those of all.
func ObservedPools(r Reader, provisioner string) ([]Pool, error) {
	return livePools(r, func(p Pool) bool {
		return p.Observed && (provisioner == "" || p.Provisioner == provisioner)
	})
}

// livePools lists those pools that are wanted, in the order of their ids.
func livePools(r Reader, wanted func(Pool) bool) ([]Pool, error) {
	var found []Pool
	for after := ""; ; {
		page, err := r.Pools(Page{After: after, Limit: 500})
		if err != nil {
			return nil, fmt.Errorf("listing pools: %w", err)
		}
		if len(page) == 0 {
			return found, nil
		}
		for _, p := range page {
			if after = p.ID; p.DeletedAt.IsZero() && wanted(p) {
				found = append(found, p)
			}
		}
	}
}

// LiveOrganization reads an organization. One that is deleted is ErrNotFound.
func LiveOrganization(r Reader, s Scope, id string) (Organization, error) {
	o, err := r.Organization(s, id)
	if err == nil && !o.DeletedAt.IsZero() {
		return Organization{}, ErrNotFound
	}
	return o, err
}

// LiveUser reads a person. One that is deleted is ErrNotFound.
func LiveUser(r Reader, s Scope, id string) (User, error) {
	user, err := r.User(s, id)
	if err == nil && !user.DeletedAt.IsZero() {
		return User{}, ErrNotFound
	}
	return user, err
}
