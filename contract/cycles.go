package contract

import (
	"encoding/json"
	"time"
)

// Cycle is what the scheduler would decide in a pool at an instant, and on what.
type Cycle struct {
	PoolID   string          `json:"pool_id"`
	PoolName string          `json:"pool_name"`
	At       time.Time       `json:"at"`
	Record   json.RawMessage `json:"record"`
}

// cyclesTags are the rests of tags that are too long for their lines.
var cyclesTags = tags{
	"Cycle.Record": `doc:"State, policy and decision, in the form that forewarm replay decides again. Its Version says ` +
		`which form that is."`,
}
