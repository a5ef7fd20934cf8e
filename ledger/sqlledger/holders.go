package sqlledger

import (
	"encoding/json"
	"fmt"

	"github.com/forewarm/forewarm/core/capacity"
)

// holdersText is whose the work in an observed pool is, as it is stored.
type holdersText struct {
	Rules   []holderText `json:"rules,omitempty"`
	Default string       `json:"default,omitempty"`
}

type holderText struct {
	Account      string `json:"account,omitempty"`
	User         string `json:"user,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Queue        string `json:"queue,omitempty"`
	Organization string `json:"organization"`
}

func packHolders(h capacity.Holders) string {
	text := holdersText{Default: h.Default}
	for _, r := range h.Rules {
		text.Rules = append(text.Rules, holderText{r.Account, r.User, r.Namespace, r.Queue, r.OrganizationID})
	}
	packed, err := json.Marshal(text)
	if err != nil {
		return "{}" // strings can always be encoded
	}
	return string(packed)
}

func unpackHolders(packed string) (capacity.Holders, error) {
	var text holdersText
	if err := json.Unmarshal([]byte(packed), &text); err != nil {
		return capacity.Holders{}, fmt.Errorf("column holders holds nothing that can be read: %q", packed)
	}
	h := capacity.Holders{Default: text.Default}
	for _, r := range text.Rules {
		h.Rules = append(h.Rules, capacity.HolderRule{Account: r.Account, User: r.User, Namespace: r.Namespace,
			Queue: r.Queue, OrganizationID: r.Organization})
	}
	return h, nil
}
