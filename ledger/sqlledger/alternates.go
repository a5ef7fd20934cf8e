package sqlledger

import (
	"encoding/json"
	"fmt"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

// alternateText is one of a pool's alternates as it is stored; durations are
// microseconds.
type alternateText struct {
	Provisioner string `json:"provisioner"`
	Region      string `json:"region"`
	Type        string `json:"type"`
	Price       int64  `json:"price"`
	MinBilling  int64  `json:"min_billing,omitempty"`
	Boot50      int64  `json:"boot50"`
	Boot95      int64  `json:"boot95"`
}

func packAlternates(alternates []capacity.Alternate) string {
	texts := make([]alternateText, 0, len(alternates))
	for _, a := range alternates {
		texts = append(texts, alternateText{a.Provisioner, a.Region, a.Type, int64(a.Price),
			a.MinBilling.Microseconds(), a.Boot50.Microseconds(), a.Boot95.Microseconds()})
	}
	text, err := json.Marshal(texts)
	if err != nil {
		return "" // strings and whole numbers can always be encoded
	}
	return string(text)
}

func unpackAlternates(text string) ([]capacity.Alternate, error) {
	var texts []alternateText
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return nil, fmt.Errorf("column alternates holds nothing that can be read: %q", text)
	}
	var alternates []capacity.Alternate
	for _, t := range texts {
		alternates = append(alternates, capacity.Alternate{
			Offering: capacity.Offering{Provisioner: t.Provisioner, Region: t.Region, Type: t.Type,
				Price: money.MicroUSD(t.Price), MinBilling: toDuration(t.MinBilling)},
			Boot50: toDuration(t.Boot50), Boot95: toDuration(t.Boot95),
		})
	}
	return alternates, nil
}
