package exec

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
)

// wireInstance is a machine as a script writes it.
type wireInstance struct {
	ID        string             `json:"id"`
	Token     string             `json:"token"`
	Owner     string             `json:"owner"`
	NodeID    string             `json:"node_id"`
	Type      string             `json:"type"`
	Phase     provisioners.Phase `json:"phase"`
	Address   string             `json:"address"`
	Devices   []wireDevice       `json:"devices"`
	CreatedAt time.Time          `json:"created_at"`
	EndedAt   *time.Time         `json:"ended_at"`
	Notice    *wireNotice        `json:"notice"`
}

type wireDevice struct {
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	Model     string `json:"model"`
	MemoryMiB int    `json:"memory_mib"`
}

type wireNotice struct {
	Kind    provisioners.NoticeKind `json:"kind"`
	At      *time.Time              `json:"at"`
	Message string                  `json:"message"`
}

// portInstance checks what the rest of the program relies on. Devices and address count
// only while the machine runs, so a script may always send them.
func (w wireInstance) portInstance(simulated bool) (provisioners.Instance, error) {
	if err := w.checkFields(); err != nil {
		return provisioners.Instance{}, fmt.Errorf("machine %q: %w", w.ID, err)
	}
	instance := provisioners.Instance{
		ID: w.ID, Token: w.Token, Owner: w.Owner, NodeID: w.NodeID, Type: w.Type, Phase: w.Phase,
		CreatedAt: truncateTime(w.CreatedAt), Simulated: simulated,
	}
	if w.Phase == provisioners.Terminated && w.EndedAt != nil {
		instance.EndedAt = truncateTime(*w.EndedAt)
	}
	if w.Phase == provisioners.Running {
		instance.Address = w.Address
		for _, d := range w.Devices {
			instance.Devices = append(instance.Devices, capacity.Device(d))
		}
	}
	if w.Notice != nil {
		instance.Notice = &provisioners.Notice{Kind: w.Notice.Kind, Message: w.Notice.Message}
		if w.Notice.At != nil {
			instance.Notice.At = truncateTime(*w.Notice.At)
		}
	}
	return instance, nil
}

func (w wireInstance) checkFields() error {
	var mistakes []error
	for _, field := range []struct{ name, value string }{
		{"id", w.ID}, {"token", w.Token}, {"owner", w.Owner}, {"node_id", w.NodeID}, {"type", w.Type},
	} {
		if field.value == "" {
			mistakes = append(mistakes, fmt.Errorf("%s: is empty", field.name))
		}
	}
	switch w.Phase {
	case provisioners.Booting, provisioners.Terminating, provisioners.Terminated:
	case provisioners.Running:
		mistakes = append(mistakes, w.checkRunning())
	default:
		mistakes = append(mistakes, fmt.Errorf("phase: %q is unknown", w.Phase))
	}
	if w.CreatedAt.IsZero() {
		mistakes = append(mistakes, errors.New("created_at: is missing"))
	}
	if w.EndedAt != nil && w.EndedAt.Before(w.CreatedAt) {
		mistakes = append(mistakes, errors.New("ended_at: is before created_at"))
	}
	return errors.Join(append(mistakes, w.Notice.checkFields())...)
}

func (w wireInstance) checkRunning() error {
	if w.Address == "" || len(w.Devices) == 0 {
		return errors.New("address, devices: a running machine has both")
	}
	uuids, indexes := map[string]bool{}, map[int]bool{}
	for i, d := range w.Devices {
		switch {
		case d.UUID == "" || uuids[d.UUID]:
			return fmt.Errorf("devices[%d]: uuid: %q is empty or there twice", i, d.UUID)
		case d.Index < 0 || indexes[d.Index]:
			return fmt.Errorf("devices[%d]: index: %d is negative or there twice", i, d.Index)
		case d.Model == "" || d.MemoryMiB < 0:
			return fmt.Errorf("devices[%d]: model, memory_mib: %q, %d", i, d.Model, d.MemoryMiB)
		}
		uuids[d.UUID], indexes[d.Index] = true, true
	}
	return nil
}

func (n *wireNotice) checkFields() error {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case provisioners.NoticeInterruption, provisioners.NoticeExpiring, provisioners.NoticeDegraded:
		return nil
	default:
		return fmt.Errorf("notice: kind: %q is unknown", n.Kind)
	}
}

// truncateTime cuts a time to what the ledger stores, so that it equals itself later.
func truncateTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
