package hold

// ForgetRights has the keeper do as one whose daemon is not root.
func (k *Keeper) ForgetRights() { k.ownUsers, k.cgroups, k.filters = false, "", false }
