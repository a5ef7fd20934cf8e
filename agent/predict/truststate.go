package predict

import (
	"fmt"

	"github.com/forewarm/forewarm/core/evidence"
)

// trustState is the stored form of trust.
type trustState struct {
	Book    *evidence.TrackRecords     `json:"book"`
	Tenants map[string]*tenantEvidence `json:"tenants"`
	Named   int64                      `json:"named"`
}

func (t *trust) storedState() *trustState { return &trustState{t.records, t.tenants, t.named} }

// restoreTrust makes trust of its stored form, or afresh if there is none. What
// sources may lose is the configuration's business, not the state's.
func (s *trustState) restoreTrust(c evidence.Config) (*trust, error) {
	if s == nil {
		return newTrust(c)
	}
	if s.Book == nil || s.Named < 0 || len(s.Tenants) > maxTenants {
		return nil, fmt.Errorf("a part is missing or too large")
	}
	if err := s.Book.Reconfigure(c); err != nil {
		return nil, err
	}
	t := &trust{records: s.Book, tenants: map[string]*tenantEvidence{}, named: s.Named}
	for name, h := range s.Tenants {
		if h == nil || h.Watch == nil || len(h.Claims) > maxRecords {
			return nil, fmt.Errorf("a tenant's evidence is damaged")
		}
		t.tenants[name] = h
	}
	return t, nil
}
