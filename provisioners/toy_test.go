package provisioners_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

// shop is a provider: it rents out boxes of one GPU, remembers every token, and
// knows nothing of us.
type shop struct {
	mu    sync.Mutex
	clock *clock.Manual
	boxes []*box
}

type box struct {
	id, token   string
	spec        provisioners.Spec
	born, ended time.Time
}

func newShop() *shop {
	return &shop{clock: clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))}
}

const (
	toyType = "box"
	toyBoot = time.Minute
)

// toy is the smallest adapter that keeps the whole contract: what README.md says,
// followed literally. It holds nothing itself.
type toy struct{ shop *shop }

func (a toy) Name() string { return "toy" }

func (a toy) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	return []provisioners.Offer{{
		Type: toyType, Model: "toy", GPUs: 1, Price: money.USD, Simulated: true,
		Boot: provisioners.Boot{P50: toyBoot, P95: toyBoot},
	}}, provisioners.Ended(ctx)
}

func (a toy) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	a.shop.mu.Lock()
	defer a.shop.mu.Unlock()
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	if err := spec.Check(token); err != nil {
		return provisioners.Instance{}, err
	}
	if known := a.shop.findBox(func(b *box) bool { return b.token == token }); known != nil {
		if known.spec.Identity() != spec.Identity() {
			return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec,
				"the token was used for another box")
		}
		return a.shop.portInstance(known), nil
	}
	if spec.Type != toyType {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec, "no type %q", spec.Type)
	}
	if a.shop.countRented() == 3 {
		return provisioners.Instance{}, &provisioners.Error{Kind: provisioners.KindCapacity, Scope: toyType,
			Message: "all boxes are rented out"}
	}
	made := &box{id: fmt.Sprint("box-", len(a.shop.boxes)), token: token, spec: spec, born: a.shop.clock.Now()}
	a.shop.boxes = append(a.shop.boxes, made)
	return a.shop.portInstance(made), nil
}

func (a toy) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	a.shop.mu.Lock()
	defer a.shop.mu.Unlock()
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	if known := a.shop.findBox(func(b *box) bool { return b.id == id }); known != nil {
		return a.shop.portInstance(known), nil
	}
	return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "no box %q", id)
}

func (a toy) List(ctx context.Context, owner string) (provisioners.List, error) {
	a.shop.mu.Lock()
	defer a.shop.mu.Unlock()
	list := provisioners.List{Complete: true}
	for _, b := range a.shop.boxes {
		if b.spec.Owner == owner {
			list.Instances = append(list.Instances, a.shop.portInstance(b))
		}
	}
	return list, provisioners.Ended(ctx)
}

func (a toy) Delete(ctx context.Context, id string) error {
	a.shop.mu.Lock()
	defer a.shop.mu.Unlock()
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	if known := a.shop.findBox(func(b *box) bool { return b.id == id }); known != nil && known.ended.IsZero() {
		known.ended = a.shop.clock.Now()
	}
	return nil
}

func (s *shop) findBox(is func(*box) bool) *box {
	for _, b := range s.boxes {
		if is(b) {
			return b
		}
	}
	return nil
}

func (s *shop) countRented() (n int) {
	for _, b := range s.boxes {
		if b.ended.IsZero() {
			n++
		}
	}
	return n
}

func (s *shop) portInstance(b *box) provisioners.Instance {
	i := provisioners.Instance{
		ID: b.id, Token: b.token, Owner: b.spec.Owner, NodeID: b.spec.NodeID, Type: b.spec.Type,
		Phase: provisioners.Booting, CreatedAt: b.born, EndedAt: b.ended, Simulated: true,
	}
	switch {
	case !b.ended.IsZero():
		i.Phase = provisioners.Terminated
	case s.clock.Now().Sub(b.born) >= toyBoot:
		i.Phase, i.Address = provisioners.Running, b.id+".toy.invalid"
		i.Devices = []capacity.Device{{UUID: "GPU-" + b.id, Model: "toy"}}
	}
	return i
}

// TestToy shows how an adapter runs the suite, and that the suite needs nothing
// but the port.
func TestToy(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		s := newShop()
		return provisionertest.Subject{
			Provisioner: toy{s},
			Reopen:      func(*testing.T) provisioners.Provisioner { return toy{s} },
			Spec:        provisioners.Spec{Type: toyType}, Machines: 3,
			Advance:    func(d time.Duration) { s.clock.Advance(d) },
			BootWithin: toyBoot, GoneWithin: time.Second,
			Reclaim: nil, // the shop never takes a box back
			Foreign: func() func() bool {
				s.boxes = append(s.boxes, &box{id: "theirs", token: "theirs", spec: provisioners.Spec{Owner: "theirs"},
					born: s.clock.Now()})
				return func() bool {
					theirs := s.findBox(func(b *box) bool { return b.id == "theirs" })
					require.NotNil(t, theirs)
					return theirs.ended.IsZero()
				}
			},
		}
	}})
}
