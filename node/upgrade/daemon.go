package upgrade

import "fmt"

// Daemon is one that began on this machine.
type Daemon struct {
	BootID string `json:"boot_id"` // of the machine
	Began  int64  `json:"began"`   // milliseconds after it booted
}

// moment is by what the daemons that begin after it are told from those before.
type moment struct {
	Welcomed Daemon `json:"welcomed"` // last, by the control plane
	At       Daemon `json:"at"`       // who would begin then
}

// look returns this moment.
func (cfg Config) look() (m moment, err error) {
	if m.Welcomed, err = cfg.Welcomed(); err != nil {
		return m, fmt.Errorf("asking which daemon was heard last: %w", err)
	}
	if m.At, err = cfg.Now(); err != nil {
		return m, fmt.Errorf("asking for how long the machine has been up: %w", err)
	}
	return m, nil
}

// isBefore reports whether a daemon that was heard began after the moment. One that began before may be heard later,
// but not after the machine has booted anew.
func (m moment) isBefore(d Daemon) bool {
	return d != m.Welcomed && (d.BootID != m.At.BootID || d.Began >= m.At.Began)
}
