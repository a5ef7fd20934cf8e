package txn

import "fmt"

// ReadHolders reads at once of which organizations allocations are, or were, for HolderOf.
func ReadHolders(tx *Tx, allocationIDs []string) error {
	if len(allocationIDs) == 0 {
		return nil
	}
	found, err := tx.Port.Holders(allocationIDs)
	if err != nil {
		return fmt.Errorf("reading whose allocations were: %w", err)
	}
	if tx.holders == nil {
		tx.holders = map[string]string{}
	}
	for _, id := range allocationIDs {
		tx.holders[id] = found[id]
	}
	return nil
}

// HolderOf is the organization that an allocation is or was of, which never changes; empty: there is no such
// allocation.
func HolderOf(tx *Tx, allocationID string) (string, error) {
	if _, known := tx.holders[allocationID]; !known {
		if err := ReadHolders(tx, []string{allocationID}); err != nil {
			return "", err
		}
	}
	return tx.holders[allocationID], nil
}
