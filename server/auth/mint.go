package auth

import (
	"io"

	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
)

// Minter makes new API keys.
type Minter struct {
	Environment string // part of every key: live, test, demo
	Pepper      keys.Pepper
	Random      io.Reader // crypto/rand.Reader outside of tests
}

// Mint fills in k's id, hash and last characters, and returns the whole key,
// which is to be shown once and kept nowhere.
func (m Minter) Mint(k ledger.Key) (ledger.Key, obs.Secret, error) {
	made, err := keys.Mint(m.Environment, m.Random)
	if err != nil {
		return k, obs.Secret{}, err
	}
	k.ID, k.Last4 = made.ID, made.Last4
	k.Hash, k.PepperVersion = []byte(m.Pepper.Hash(made.Secret)), m.Pepper.Version()
	return k, made.Text, nil
}
