package ledger

import (
	"fmt"
	"time"
)

// ProvisionerHold says which worker a provisioner serves that serves one at a
// time.
type ProvisionerHold struct {
	Name   string // of the provisioner
	Holder string // what stays the same when the worker is started again, and only then
	Host   string // where it runs, for people
	Until  time.Time
}

// ProvisionerHeldError says that a provisioner serves another worker now.
type ProvisionerHeldError struct{ ProvisionerHold }

// Error names the provisioner and where the other worker runs.
func (e *ProvisionerHeldError) Error() string {
	return fmt.Sprintf("provisioner %q serves the worker on %s, and one worker at a time: its state is in that "+
		"worker's data directory",
		e.Name, e.Host)
}
