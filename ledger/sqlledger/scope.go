package sqlledger

import (
	"gorm.io/gorm"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/statemachine"
	"github.com/forewarm/forewarm/ledger"
)

// Sizes of a page.
const (
	defaultPage = 50
	maxPage     = 500
)

// tenantColumn is the column that says which organization a row belongs to.
const tenantColumn = "organization_id"

// inScope narrows a query to the rows that s may see; column holds the
// organization. Every query for a tenant's rows passes here, and the zero scope
// sees none.
func inScope(db *gorm.DB, s ledger.Scope, column string) *gorm.DB {
	switch {
	case s.All:
		return db
	case s.OrganizationID == "":
		return db.Where("1 = 0")
	default:
		return db.Where(column+" = ?", s.OrganizationID)
	}
}

// onPage narrows a query to one page, ordered by id.
func onPage(db *gorm.DB, p ledger.Page) *gorm.DB { return orderedPage(db, "id", p) }

// fewOnPage is onPage for a query of few rows, which an index of their own finds. The
// expression keeps the database from looking for them in the order of all ids.
func fewOnPage(db *gorm.DB, p ledger.Page) *gorm.DB { return orderedPage(db, "id || ''", p) }

func orderedPage(db *gorm.DB, id string, p ledger.Page) *gorm.DB {
	if p.Newest {
		if p.After != "" {
			db = db.Where(id+" < ?", p.After)
		}
		return db.Order(id + " DESC").Limit(pageSize(p.Limit))
	}
	if p.After != "" {
		db = db.Where(id+" > ?", p.After)
	}
	return db.Order(id).Limit(pageSize(p.Limit))
}

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

// The conditions for live rows, in the words of the partial indexes: SQLite uses a
// partial index only for a condition in the index's own words.
var (
	liveNode        = liveCondition(&node.Machine)
	liveReservation = liveCondition(&reservation.Machine)
	liveAllocation  = liveCondition(&allocation.Machine)
	liveJob         = liveCondition(&job.Machine)
	jobWithGPUs     = "state IN ('scheduled', 'running', 'preempted')"
)

// The conditions for rows that are over, in the words of their partial indexes.
var (
	overReservation = "state IN ('claimed', 'cancelled', 'expired', 'failed')"
	overAllocation  = "state IN ('released', 'failed', 'expired', 'cancelled')"
)

func liveCondition[S, E ~string](t *statemachine.Table[S, E]) string {
	list := ""
	for _, s := range t.States {
		if t.Terminal(s) {
			if list != "" {
				list += ", "
			}
			list += "'" + string(s) + "'"
		}
	}
	return "state NOT IN (" + list + ")"
}
