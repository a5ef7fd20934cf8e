package plan

// Codes of the reasons that are stored with an action.
const (
	ReasonLease       = "lease_ended"
	ReasonNodeLost    = "node_lost"
	ReasonNodeTaken   = "node_taken" // by work that the cluster placed, or taken out of use by it
	ReasonNoShow      = "no_show"
	ReasonWindowEnded = "window_ended"
	ReasonNeverReady  = "never_ready"
	ReasonLead        = "lead_time_reached"
	ReasonNodesReady  = "nodes_ready"
	ReasonLate        = "late"
	ReasonHandOver    = "hand_over"
	ReasonRepack      = "made_room"
	ReasonShrunk      = "capacity_shrunk"
	ReasonRestored    = "capacity_restored"
	ReasonTurn        = "its_turn"
	ReasonPaused      = "prewarm_paused"
	ReasonDemand      = "on_demand"
	ReasonPrewarm     = "pre_warm"
	ReasonAhead       = "ahead_of_job"
	ReasonMinimum     = "pool_minimum"
	ReasonIdle        = "idle"
	ReasonUnused      = "unused"
	ReasonEmpty       = "empty"
	ReasonBootTimeout = "boot_timeout"
	ReasonUnhealthy   = "unhealthy"
	ReasonGPUsIdle    = "gpus_idle"
)
