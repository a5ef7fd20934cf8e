package keys

import (
	"cmp"

	"github.com/forewarm/forewarm/cli/caps"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var keyView = output.View[contract.Key]{
	Name: func(x contract.Key) string { return x.ID },
	Columns: []output.Column[contract.Key]{
		{Head: "ID", Cell: func(x contract.Key) string { return x.ID }},
		{Head: "NAME", Cell: func(x contract.Key) string { return x.Name }},
		{Head: "KIND", Cell: func(x contract.Key) string { return x.Kind }},
		{Head: "ROLE", Cell: func(x contract.Key) string { return x.Role }},
		{Head: "LAST 4", Cell: func(x contract.Key) string { return "…" + x.Last4 }},
		{Head: "CAPS", Cell: func(x contract.Key) string { return caps.Text(x.Caps) }},
		{Head: "LAST USED", Cell: func(x contract.Key) string { return format.Time(x.LastUsedAt) }},
		{Head: "ENDED", Cell: describeEnd},
		{Head: "EXPIRES", Cell: func(x contract.Key) string { return format.Time(x.ExpiresAt) }, Wide: true},
		{Head: "RESTS ON", Cell: func(x contract.Key) string { return format.OrDash(x.ParentID) }, Wide: true},
		{Head: "USER", Cell: func(x contract.Key) string { return format.OrDash(cmp.Or(x.UserEmail, x.UserID)) },
			Wide: true},
		{Head: "ORGANIZATION",
			Cell: func(x contract.Key) string { return format.OrDash(cmp.Or(x.OrganizationName, x.OrganizationID)) },
			Wide: true},
	},
}

// createdKey shows the one answer that holds a secret.
var createdKey = output.View[contract.KeyCreated]{
	Name: func(x contract.KeyCreated) string { return x.Key.ID },
	Columns: []output.Column[contract.KeyCreated]{
		{Head: "ID", Cell: func(x contract.KeyCreated) string { return x.Key.ID }},
		{Head: "NAME", Cell: func(x contract.KeyCreated) string { return x.Key.Name }},
		{Head: "KIND", Cell: func(x contract.KeyCreated) string { return x.Key.Kind }},
		{Head: "ROLE", Cell: func(x contract.KeyCreated) string { return x.Key.Role }},
		{Head: "CAPS", Cell: func(x contract.KeyCreated) string { return caps.Text(x.Key.Caps) }},
		{Head: "SECRET", Cell: func(x contract.KeyCreated) string { return x.Secret }},
	},
}

// describeEnd says when a key ended, or with what, if it has.
func describeEnd(x contract.Key) string {
	switch {
	case x.Works:
		return format.OrDash("")
	case !x.RevokedAt.IsZero():
		return format.Time(x.RevokedAt)
	case x.EndedWith != "":
		return "with " + x.EndedWith
	}
	return format.Time(x.ExpiresAt)
}
