package status

import (
	"cmp"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// overview is one screen.
type overview struct {
	Server  string           `json:"server"`
	Version contract.Build   `json:"version"`
	Whoami  *contract.Whoami `json:"whoami,omitempty"`
	Report  *contract.Report `json:"report,omitempty"`
	Prewarm contract.Prewarm `json:"prewarm"`
	// Jobs are those of the key's organization that are not over.
	Jobs contract.JobCounts `json:"jobs"`
	// OthersPending are the jobs of other organizations that wait, which an operator is told.
	OthersPending int             `json:"others_pending,omitempty"`
	Pools         []contract.Pool `json:"pools"`
	GPUs          []supply        `json:"gpus"`
	Waiting       []waiter        `json:"waiting"`
}

// supply is what becomes of a pool's GPUs now.
type supply struct {
	Pool    string `json:"pool"`
	Model   string `json:"model"`
	State   string `json:"state"`
	Up      int    `json:"up"`      // of nodes that are ready
	Free    int    `json:"free"`    // of them, those that nobody holds and nothing is kept for
	Held    int    `json:"held"`    // by anybody
	Booting int    `json:"booting"` // of nodes on their way
	Booked  int    `json:"booked"`  // by unclaimed reservations of the day to come that the key may see
	Most    int    `json:"most"`    // what the pool may have

	simulated bool
}

var supplyView = output.View[supply]{
	Name: func(x supply) string { return x.Pool },
	Columns: []output.Column[supply]{
		{Head: "POOL", Cell: func(x supply) string { return format.MarkSimulated(x.Pool, x.simulated) }},
		{Head: "MODEL", Cell: func(x supply) string { return x.Model }},
		{Head: "UP", Right: true, Cell: func(x supply) string { return strconv.Itoa(x.Up) }},
		{Head: "FREE", Right: true, Cell: func(x supply) string { return strconv.Itoa(x.Free) }},
		{Head: "HELD", Right: true, Cell: func(x supply) string { return strconv.Itoa(x.Held) }},
		{Head: "BOOTING", Right: true, Cell: func(x supply) string { return strconv.Itoa(x.Booting) }},
		{Head: "BOOKED 24H", Right: true, Cell: func(x supply) string { return strconv.Itoa(x.Booked) }},
		{Head: "MOST", Right: true, Cell: func(x supply) string { return strconv.Itoa(x.Most) }},
		{Head: "STATE", Cell: func(x supply) string { return x.State }},
	},
}

// waiter is what waits, and why.
type waiter struct {
	ID      string                 `json:"id"`
	Name    string                 `json:"name,omitempty"`
	Pool    string                 `json:"pool,omitempty"`
	GPUs    int                    `json:"gpus"`
	State   string                 `json:"state"`
	Since   time.Time              `json:"since"`
	Wait    *contract.WaitEstimate `json:"wait,omitempty"`
	Because string                 `json:"because,omitempty"`
}

func waiterView(now time.Time) output.View[waiter] {
	return output.View[waiter]{
		Name: func(x waiter) string { return x.ID },
		Columns: []output.Column[waiter]{
			{Head: "WAITS", Cell: func(x waiter) string { return cmp.Or(x.Name, x.ID) }},
			{Head: "GPUS", Right: true, Cell: func(x waiter) string { return strconv.Itoa(x.GPUs) }},
			{Head: "POOL", Cell: func(x waiter) string { return format.OrDash(x.Pool) }},
			{Head: "FOR", Right: true,
				Cell: func(x waiter) string { return format.Duration(now.Sub(x.Since).Round(time.Second)) }},
			{Head: "READY IN", Cell: func(x waiter) string { return format.ReadyIn(x.Wait) }},
			{Head: "WHY", Cell: func(x waiter) string { return format.OrDash(x.Because) }},
		},
	}
}
