package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ClockReset is what came of resetting a GPU's clocks.
type ClockReset struct {
	UUID  string `json:"uuid"`
	Reset bool   `json:"reset,omitempty"` // what could be was
	// Why not, or not all.
	Why string `json:"why,omitempty"`
	// Wrong says what is read back after a reset that is not the default.
	Wrong string `json:"wrong,omitempty"`
}

// Clocks resets clocks through a child of its own for each time, so that no session with the driver stays.
type Clocks struct {
	Command []string // as a Child's
}

// ResetClocks has GPUs choose their clocks by themselves. Where the driver does not let it, or cannot be asked, that is
// said; the error says that a GPU still has others than its defaults after it did. MIG devices have none of their own.
func (c Clocks) ResetClocks(ctx context.Context, uuids []string) (said string, err error) {
	whole := slices.DeleteFunc(slices.Clone(uuids), func(uuid string) bool { return !strings.HasPrefix(uuid, "GPU-") })
	if len(whole) == 0 {
		return "they have no clocks of their own", nil
	}
	child := &Child{Command: c.Command}
	defer child.Close()
	a, err := child.tell(ctx, clocksWord+" "+strings.Join(whole, " "))
	if err != nil {
		return "clocks not reset: " + err.Error(), nil //nolint:nilerr // it is told, and is no dirt
	}
	var not []string
	for _, r := range a.Clocks {
		if r.Wrong != "" {
			err = errors.Join(err, fmt.Errorf("the clocks of GPU %s were reset, and %s", r.UUID, r.Wrong))
		}
		if r.Why != "" && !slices.Contains(not, r.Why) {
			not = append(not, r.Why)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(not) > 0:
		return "clocks not reset: " + strings.Join(not, ", "), nil
	}
	return "clocks reset", nil
}
