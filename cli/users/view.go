package users

import (
	"cmp"

	"github.com/forewarm/forewarm/cli/caps"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var userView = output.View[contract.User]{
	Name: func(x contract.User) string { return x.ID },
	Columns: []output.Column[contract.User]{
		{Head: "ID", Cell: func(x contract.User) string { return x.ID }},
		{Head: "EMAIL", Cell: func(x contract.User) string { return x.Email }},
		{Head: "ROLE", Cell: func(x contract.User) string { return x.Role }},
		{Head: "ACTIVE", Cell: func(x contract.User) string { return format.YesNo(x.Active) }},
		{Head: "CAPS", Cell: func(x contract.User) string { return caps.Text(x.Caps) }, Wide: true},
		{Head: "ORGANIZATION",
			Cell: func(x contract.User) string { return cmp.Or(x.OrganizationName, x.OrganizationID) }},
	},
}
