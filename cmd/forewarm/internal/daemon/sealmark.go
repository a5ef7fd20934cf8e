package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/ledger"
)

// sealMark keeps the newest seal of the journal that this process has seen in a
// file of the data directory, where who writes to the database cannot write.
type sealMark struct {
	path string
	log  *slog.Logger
}

// sealMark is the file's place. Two installations that share a directory have
// different deployments.
func (c Config) sealMark(log *slog.Logger) sealMark {
	return sealMark{path: filepath.Join(c.DataDir, "seals-"+c.Deployment+".mark"), log: log}
}

// Load implements ledger.SealMemory.
func (m sealMark) Load() (mark ledger.SealMark, err error) {
	if _, err = statefile.Read(m.path, &mark); err != nil {
		return ledger.SealMark{}, fmt.Errorf("reading the newest seal that was seen: %w", err)
	}
	return mark, nil
}

// Save implements ledger.SealMemory.
func (m sealMark) Save(mark ledger.SealMark) {
	if err := statefile.Write(m.path, mark); err != nil {
		m.log.Warn("the newest seal could not be noted: seals that are removed from the database may go unnoticed", "path",
			m.path, "error", err)
	}
}

// Where implements ledger.SealMemory.
func (m sealMark) Where() string {
	host, err := os.Hostname()
	if err != nil {
		return m.path
	}
	return host + ":" + m.path
}
