package peers

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/forewarm/forewarm/internal/keys"
)

// label names the key that is derived from a pepper for these connections.
const label = "peer connections"

// certificateLife is how long a process's certificate is valid: nobody reads it but
// processes that know the key, so a longer one than they live is as good.
const certificateLife = 10 * 365 * 24 * time.Hour

// secureConnections returns the settings of TLS on both sides. Each side proves that
// it knows a pepper, by the key that is derived from it; there is nothing to
// issue, to renew or to revoke. Programs of another version are refused: they may
// mean something else by the same words.
func secureConnections(peppers []keys.Pepper, version string, now time.Time) (*tls.Config, error) {
	var known []ed25519.PublicKey
	var first ed25519.PrivateKey
	for i, p := range peppers {
		key := ed25519.NewKeyFromSeed(p.Derive(label))
		public, _ := key.Public().(ed25519.PublicKey)
		if known = append(known, public); i == 0 {
			first = key
		}
	}
	certificate, err := selfSigned(first, now)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
		NextProtos: []string{"forewarm-peers/" + version, sessionProtocol + version}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, //nolint:gosec // the key is what is verified, below; names mean nothing here
		VerifyConnection:       func(s tls.ConnectionState) error { return checkPeer(s, known) },
		SessionTicketsDisabled: true,
	}, nil
}

func selfSigned(key ed25519.PrivateKey, now time.Time) (tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-certificateLife),
		NotAfter: now.Add(certificateLife)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate for other servers: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

var (
	errStranger = errors.New("the other side does not know the pepper")
	errVersion  = errors.New("the other side is of another version")
)

// checkPeer refuses whoever does not prove to know one of the peppers, and whoever
// is of another version.
func checkPeer(s tls.ConnectionState, known []ed25519.PublicKey) error {
	if s.NegotiatedProtocol == "" {
		return errVersion
	}
	if len(s.PeerCertificates) != 1 {
		return errStranger
	}
	theirs, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return errStranger
	}
	for _, ours := range known {
		if subtle.ConstantTimeCompare(theirs, ours) == 1 {
			return nil
		}
	}
	return errStranger
}
