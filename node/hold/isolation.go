package hold

// How well a node keeps a holder from others' work.
const (
	// OwnDevices says that it is as with OwnUser, and that the work of a holder can open no
	// GPU but its own.
	OwnDevices = "devices"
	// OwnUser says that the work of each holder has a user of its own: it cannot touch the
	// files and processes of others. It is told its GPUs, and could use others.
	OwnUser = "user"
	// EnvironmentOnly says that the work of all holders has the daemon's user, and is told
	// its GPUs: for people who trust each other.
	EnvironmentOnly = "environment"
)

// Isolation says how well this node keeps a holder from others' work.
func (k *Keeper) Isolation() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.filters && tellApart(k.opens):
		return OwnDevices
	case k.ownUsers:
		return OwnUser
	}
	return EnvironmentOnly
}

// isolation says how well a hold is kept from others.
func (r *record) isolation() string {
	switch {
	case r.Filtered:
		return OwnDevices
	case r.OwnUser:
		return OwnUser
	}
	return EnvironmentOnly
}
