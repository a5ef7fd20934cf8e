package sqlledger

import (
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// capacityReader reads pools and nodes, and what provisioners have reported.
type capacityReader struct{ *connection }

func (r capacityReader) Pool(idOrName string) (ledger.Pool, error) {
	return readRow[poolRow](r.newQuery().
		Where("id = ? OR name = ? AND deleted_at = 0", idOrName, idOrName).
		Order(clause.Expr{SQL: "CASE WHEN id = ? THEN 0 ELSE 1 END", Vars: []any{idOrName}}),
		"reading pool "+idOrName)
}

func (r capacityReader) DeletedPool(name string) (ledger.Pool, error) {
	return readRow[poolRow](r.newQuery().Where("name = ? AND deleted_at <> 0", name).Order("deleted_at DESC"),
		"reading the deleted pool "+name)
}

func (r capacityReader) Pools(p ledger.Page) ([]ledger.Pool, error) {
	return listRows[poolRow](onPage(r.newQuery().Where("deleted_at = 0"), p), "listing pools")
}

func (r capacityReader) BareNode(id string) (node.Node, error) {
	return readRow[nodeRow](r.newQuery().Where("id = ?", id), "reading node "+id)
}

func (r capacityReader) Node(id string) (node.Node, error) {
	n, err := r.BareNode(id)
	if err != nil {
		return n, err
	}
	nodes, err := r.readDevices([]node.Node{n})
	return nodes[0], err
}

func (r capacityReader) Nodes(f ledger.NodeFilter, p ledger.Page) ([]node.Node, error) {
	db := r.newQuery()
	if f.PoolID != "" {
		db = db.Where("pool_id = ?", f.PoolID)
	}
	if f.Provisioner != "" {
		db = db.Where("provisioner = ?", f.Provisioner)
	}
	if len(f.State) > 0 {
		db = db.Where("state IN ?", f.State)
	}
	if f.Live {
		db = db.Where(liveNode)
	}
	if f.Places != nil {
		db = db.Where(onPlaces(r.newQuery(), f.Places))
	}
	nodes, err := listRows[nodeRow](onPage(db, p), "listing nodes")
	if err != nil {
		return nil, err
	}
	return r.readDevices(nodes)
}

// onPlaces is the condition that a node is on one of the slots.
func onPlaces(db *gorm.DB, places []ledger.Place) *gorm.DB {
	slots := map[string][]int{}
	for _, p := range places {
		slots[p.PoolID] = append(slots[p.PoolID], p.Slot)
	}
	where := db.Where("1 = 0")
	for _, pool := range slices.Sorted(maps.Keys(slots)) {
		where = where.Or("pool_id = ? AND slot IN ?", pool, slots[pool])
	}
	return where
}

// readDevices adds the devices to a page of nodes.
func (r capacityReader) readDevices(nodes []node.Node) ([]node.Node, error) {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID
	}
	var devices []gpuRow
	err := r.newQuery().Where("node_id IN ?", ids).Order("node_id, idx, uuid").Find(&devices).Error
	return attachDevices(nodes, devices), wrapError("reading devices", err)
}

// attachDevices adds devices, which are in order, to their nodes.
func attachDevices(nodes []node.Node, devices []gpuRow) []node.Node {
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		at[n.ID] = i
	}
	for _, d := range devices {
		if i, ok := at[d.NodeID]; ok {
			nodes[i].Devices = append(nodes[i].Devices, d.toDevice())
		}
	}
	return nodes
}

func (r capacityReader) Generation(poolID string, slot int) (int, error) {
	var count int64
	err := r.newQuery().Table("nodes").Where("pool_id = ? AND slot = ?", poolID, slot).Count(&count).Error
	return int(count), wrapError("counting the nodes of a slot", err)
}

// Orphans returns them in the order of their keys.
func (r capacityReader) Orphans(f ledger.OrphanFilter) ([]ledger.Orphan, error) {
	db := r.newQuery().Order("provisioner, machine")
	if f.Provisioner != "" {
		db = db.Where("provisioner = ?", f.Provisioner)
	}
	if f.Billed {
		db = db.Where("billed_until = 0")
	}
	return listRows[orphanRow](db, "reading orphans")
}

// Provisioners returns them in the order of their names.
func (r capacityReader) Provisioners() ([]ledger.Provisioner, error) {
	return listRows[provisionerRow](r.newQuery().Order("name"), "reading provisioners")
}

// Watched reads it from the provisioner's row.
func (r capacityReader) Watched(provisioner string) (ledger.Watched, error) {
	w, found, err := findRow[watchedRow](r.newQuery().Where("name = ?", provisioner), "reading what was watched")
	if !found {
		w.Provisioner = provisioner
	}
	return w, err
}
