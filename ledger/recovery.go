package ledger

import (
	"time"
)

// Recovery says since when a pool only reconciles, and why. The zero value says
// that it does not.
//
// A database that was restored from a backup is wrong about the world in both
// directions: it does not know machines that were made since, and believes GPUs
// free that somebody holds. Acting on it would end the ones and give the others
// away twice. So while a pool recovers nothing is made, ended or handed out:
// machines are only looked at, and what was given back is taken back. Nothing is
// promised either: the calendar may lack what was promised since.
type Recovery struct {
	Since  time.Time
	Reason string
}

// Active reports whether the pool only reconciles.
func (r Recovery) Active() bool { return !r.Since.IsZero() }

// UsesProvisioner reports whether a pool may have machines of the provisioner. A node of a
// source that the pool has no more is not known here; its own provisioner's
// sweep looks after it.
func UsesProvisioner(p Pool, provisioner string) bool {
	for _, s := range p.Pool.Offerings() {
		if s.Provisioner == provisioner {
			return true
		}
	}
	return false
}

// AnyRecovers reports whether a pool only reconciles, until an operator has confirmed what was found.
func AnyRecovers(r Reader) (bool, error) {
	found, err := livePools(r, func(p Pool) bool { return p.Recovery.Active() })
	return len(found) > 0, err
}
