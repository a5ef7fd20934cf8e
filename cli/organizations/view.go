package organizations

import (
	"strconv"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var organizationView = output.View[contract.Organization]{
	Name: func(x contract.Organization) string { return x.ID },
	Columns: []output.Column[contract.Organization]{
		{Head: "ID", Cell: func(x contract.Organization) string { return x.ID }},
		{Head: "NAME", Cell: func(x contract.Organization) string { return x.Name }},
		{Head: "MAX GPUS", Right: true,
			Cell: func(x contract.Organization) string { return strconv.Itoa(x.Limits.MaxGPUs) }},
		{Head: "SPECULATION/DAY", Right: true,
			Cell: func(x contract.Organization) string { return format.Money(x.Limits.SpeculationPerDay) }},
		{Head: "CREATED", Cell: func(x contract.Organization) string { return format.Time(x.CreatedAt) }, Wide: true},
	},
}
