package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
)

// pendingKey is the file that holds the first key from before it is stored until
// it is in its owner's hands: whoever is killed between the two finds it there.
func (a *app) pendingKey() string { return filepath.Join(a.cfg.DataDir, "first-key") }

// beginEmbedded is begin for a run that hands the first key over itself. It
// returns the key as long as that was not done.
func (a *app) beginEmbedded(ctx context.Context, pools []ledger.NewPool) (obs.Secret, error) {
	first, text, err := a.takePending()
	if err != nil {
		return obs.Secret{}, err
	}
	if err := reportOffers(ctx, a, pools); err != nil {
		return obs.Secret{}, err
	}
	started, err := a.bootstrapLedger(ctx, first, pools)
	if err != nil {
		return obs.Secret{}, err
	}
	for _, p := range started.Pools {
		if !p.DeletedAt.IsZero() {
			a.log.Warn("a deleted pool is made again, because the configuration still declares it", "pool", p.Name,
				"deleted_at", p.DeletedAt)
		}
	}
	if started.FirstKey {
		return text, nil
	}
	if _, err := a.ledger.Authenticate(ctx, first.ID); err == nil {
		return text, nil // stored by a start that ended before it could say so
	}
	return obs.Secret{}, a.dropPending()
}

// takePending reads the pending key, or mints one and keeps it.
func (a *app) takePending() (ledger.Key, obs.Secret, error) {
	text, err := os.ReadFile(a.pendingKey())
	if err == nil {
		if parsed, err := keys.Parse(strings.TrimSpace(string(text))); err == nil {
			k := ledger.Key{ID: parsed.ID, Name: "first key", Last4: parsed.Last4, PepperVersion: a.pepper.Version()}
			k.Hash = []byte(a.pepper.Hash(parsed.Secret))
			return k, parsed.Text, nil
		}
		err = a.dropPending() // cut off while it was written: it was stored nowhere
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return ledger.Key{}, obs.Secret{}, fmt.Errorf("reading the pending first key: %w", err)
	}
	k, secret, err := a.minter.Mint(ledger.Key{Name: "first key"})
	if err != nil {
		return k, secret, fmt.Errorf("minting the first key: %w", err)
	}
	if err := writeNew(a.pendingKey(), []byte(secret.Reveal()+"\n")); err != nil {
		return k, secret, fmt.Errorf("keeping the first key until it is handed over: %w", err)
	}
	return k, secret, nil
}

func (a *app) dropPending() error {
	if err := os.Remove(a.pendingKey()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the pending first key: %w", err)
	}
	return nil
}
