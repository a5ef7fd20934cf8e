package contract

import "time"

// AuditPage is what a part of the journal was found to be, compared with its
// seals.
type AuditPage struct {
	Seals         int           `json:"seals" doc:"How many seals this page checked."`
	Events        int           `json:"events" doc:"How many events they cover."`
	LastSeal      string        `json:"last_seal,omitempty"`
	More          bool          `json:"more"`
	NewestSeal    int64         `json:"newest_seal" doc:"Number of the newest seal there is."`
	Finding       *AuditFinding `json:"finding,omitempty"`
	Unsealed      int64         `json:"unsealed_events"`
	UnsealedSince *time.Time    `json:"unsealed_since,omitempty" doc:"When the oldest of them happened."`
}

// AuditFinding is one thing that is not as it was sealed.
type AuditFinding struct {
	Kind  string `json:"kind"`
	Seal  int64  `json:"seal" doc:"Number of the seal; 0 for the journal as a whole."`
	Event int64  `json:"event,omitempty" doc:"Number of the event; absent for the seal itself or the journal."`
	What  string `json:"what"`
}

// auditTags are the rests of tags that are too long for their lines.
var auditTags = tags{
	"AuditPage.LastSeal": `doc:"The last seal that holds, as NUMBER:MAC: send it as after for the next page. Kept ` +
		`elsewhere, it later proves that nothing before it was rewritten."`,
	"AuditPage.Finding":  `doc:"The first thing that is not as it was sealed; nothing after it was looked at."`,
	"AuditPage.Unsealed": `doc:"On the last page: about how many events no seal covers yet."`,
	"AuditFinding.Kind": `enum:"event-changed,event-missing,event-inserted,event-reordered,seal-changed,` +
		`seal-missing,other-key,anchor-differs,seals-behind,not-sealed"`,
}
