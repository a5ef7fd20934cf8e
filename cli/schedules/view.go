package schedules

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// View shows schedules.
var View = output.View[contract.Schedule]{
	Name: func(x contract.Schedule) string { return x.ID },
	Columns: []output.Column[contract.Schedule]{
		{Head: "ID", Cell: func(x contract.Schedule) string { return x.ID }},
		{Head: "NAME", Cell: func(x contract.Schedule) string { return format.OrDash(x.Name) }},
		{Head: "GPUS", Right: true, Cell: func(x contract.Schedule) string { return strconv.Itoa(x.GPUs) }},
		{Head: "RULE", Cell: func(x contract.Schedule) string { return x.RRule }},
		{Head: "START", Cell: func(x contract.Schedule) string { return x.StartLocal }},
		{Head: "ZONE", Cell: func(x contract.Schedule) string { return x.Timezone }},
		{Head: "FOR", Right: true, Cell: func(x contract.Schedule) string { return format.Seconds(x.DurationSeconds) }},
		{Head: "PAUSED", Cell: func(x contract.Schedule) string { return format.YesNo(x.Paused) }},
		{Head: "POOL", Cell: func(x contract.Schedule) string { return cmp.Or(x.PoolName, x.PoolID) }},
		{Head: "LAYOUT",
			Cell: func(x contract.Schedule) string { return flags.AskedLayout(x.Nodes, x.GPUsPerNode, x.Spread) },
			Wide: true},
		{Head: "SKIPPED", Cell: func(x contract.Schedule) string { return format.OrDash(strings.Join(x.ExDates, " ")) },
			Wide: true},
		{Head: "DST", Cell: func(x contract.Schedule) string { return x.DSTPolicy }, Wide: true},
	},
}
