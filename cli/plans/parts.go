package plans

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/forewarm/forewarm/contract"
)

// changedParts is a change of an object as those of its parts that change: among all
// limits of a tenant, the one that is meant would be hard to find. Anything else is
// one part.
func changedParts(f contract.FieldChange) []contract.FieldChange {
	from, to := partsOf(f.From), partsOf(f.To)
	if from == nil || to == nil {
		return []contract.FieldChange{f}
	}
	all := maps.Clone(from)
	maps.Copy(all, to)
	var changed []contract.FieldChange
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(from[name], to[name]) {
			part := contract.FieldChange{Name: f.Name + "." + name, From: from[name], To: to[name]}
			changed = append(changed, changedParts(part)...)
		}
	}
	return changed
}

// partsOf are the parts of an object; nil for anything else, and for an amount of
// money, which is one value.
func partsOf(value json.RawMessage) map[string]json.RawMessage {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(value, &parts); err != nil || parts["currency"] != nil {
		return nil
	}
	return parts
}
