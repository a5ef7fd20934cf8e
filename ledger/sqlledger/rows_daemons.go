package sqlledger

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// daemonRow has the node's id as its own.
type daemonRow struct {
	Head         rowHead `gorm:"embedded"`
	Generation   int     `gorm:"column:generation"`
	TokenID      string  `gorm:"column:token_id"`
	TokenHash    []byte  `gorm:"column:token_hash"`
	TokenExpires int64   `gorm:"column:token_expires_at"`
	TokenUsed    int64   `gorm:"column:token_used_at"`
	KeyID        string  `gorm:"column:key_id"`
	KeyHash      []byte  `gorm:"column:key_hash"`
	KeyExpires   int64   `gorm:"column:key_expires_at"`
	OldKeyID     string  `gorm:"column:old_key_id"`
	OldKeyHash   []byte  `gorm:"column:old_key_hash"`
	OldKeyUntil  int64   `gorm:"column:old_key_until"`
	BootID       string  `gorm:"column:boot_id"`
	Joined       int64   `gorm:"column:joined_at"`
	Clears       int     `gorm:"column:clears"`
	Refused      int64   `gorm:"column:refused_at"`
}

func (daemonRow) TableName() string  { return "node_daemons" }
func (r daemonRow) rowHead() rowHead { return r.Head }

func daemonToRow(d ledger.Daemon) daemonRow {
	return daemonRow{
		Head: nextVersion(d.NodeID, d.Version), Generation: d.Generation,
		TokenID: d.TokenID, TokenHash: notNil(d.TokenHash), TokenExpires: toMicros(d.TokenExpires),
		TokenUsed: toMicros(d.TokenUsed),
		KeyID:     d.KeyID, KeyHash: notNil(d.KeyHash), KeyExpires: toMicros(d.KeyExpires),
		OldKeyID: d.OldKeyID, OldKeyHash: notNil(d.OldKeyHash), OldKeyUntil: toMicros(d.OldKeyUntil),
		BootID: d.BootID, Joined: toMicros(d.JoinedAt), Clears: d.Clears, Refused: toMicros(d.RefusedAt),
	}
}

// orNil is nil for what is empty: one database gives back the one, and one the other.
func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

func (r daemonRow) toValue() (ledger.Daemon, error) {
	return ledger.Daemon{
		NodeID: r.Head.ID, Generation: r.Generation,
		TokenID: r.TokenID, TokenHash: orNil(r.TokenHash), TokenExpires: toTime(r.TokenExpires),
		TokenUsed: toTime(r.TokenUsed),
		KeyID:     r.KeyID, KeyHash: orNil(r.KeyHash), KeyExpires: toTime(r.KeyExpires),
		OldKeyID: r.OldKeyID, OldKeyHash: orNil(r.OldKeyHash), OldKeyUntil: toTime(r.OldKeyUntil),
		BootID: r.BootID, JoinedAt: toTime(r.Joined), Clears: r.Clears, RefusedAt: toTime(r.Refused),
		Version: r.Head.Version,
	}, nil
}

type presenceRow struct {
	NodeID  string `gorm:"column:node_id;primaryKey"`
	Seen    int64  `gorm:"column:seen_at"`
	BootID  string `gorm:"column:boot_id"`
	Epoch   int64  `gorm:"column:epoch"`
	Program string `gorm:"column:program"`
	Look    []byte `gorm:"column:look"`
	// Activity is packed, as the look is, since nothing is asked of it in SQL.
	Activity string `gorm:"column:activity"`
}

func (presenceRow) TableName() string { return "node_presences" }

const replacePresence = "ON CONFLICT (node_id) DO UPDATE SET seen_at = excluded.seen_at, " +
	"boot_id = excluded.boot_id, epoch = excluded.epoch, program = excluded.program, look = excluded.look, " +
	"activity = excluded.activity"

func presenceToRow(p ledger.Presence) presenceRow {
	return presenceRow{NodeID: p.NodeID, Seen: toMicros(p.SeenAt), BootID: p.BootID, Epoch: p.Epoch,
		Program: p.Program, Look: notNil(p.Look), Activity: packList(p.Activity)}
}

func (r presenceRow) toValue() (ledger.Presence, error) {
	open, err := unpackList[activity.Open]("activity", r.Activity)
	return ledger.Presence{NodeID: r.NodeID, SeenAt: toTime(r.Seen), BootID: r.BootID, Epoch: r.Epoch,
		Program: r.Program, Look: r.Look, Activity: open}, err
}

func (r capacityReader) Daemon(nodeID string) (ledger.Daemon, error) {
	return readRow[daemonRow](r.newQuery().Where("id = ?", nodeID), "reading the daemon of "+nodeID)
}

// demandRow is of a pool what a report of a node's daemon is judged by.
type demandRow struct {
	MinDriver string `gorm:"column:min_driver"`
}

func (demandRow) TableName() string { return "pools" }

func (r capacityReader) DaemonState(nodeID string) (s ledger.DaemonState, err error) {
	var daemons []daemonRow
	var nodes []nodeRow
	var said []presenceRow
	var demands []demandRow
	doing := "reading the daemon of " + nodeID
	err = r.readTogether(
		queryRows(doing, &daemons, "FROM node_daemons WHERE id = ?", nodeID),
		queryRows(doing, &nodes, "FROM nodes WHERE id = ?", nodeID),
		queryRows(doing, &said, "FROM node_presences WHERE node_id = ?", nodeID),
		queryRows(doing, &demands, "FROM pools WHERE id = (SELECT pool_id FROM nodes WHERE id = ?)", nodeID))
	if err == nil && (len(daemons) == 0 || len(nodes) == 0) {
		err = wrapError(doing, ledger.ErrNotFound)
	}
	if err != nil {
		return s, err
	}
	if s.Daemon, err = daemons[0].toValue(); err != nil {
		return s, wrapError(doing, err)
	}
	if s.Node, err = nodes[0].toValue(); err != nil {
		return s, wrapError(doing, err)
	}
	if len(demands) > 0 {
		s.MinDriver = capacity.Driver(demands[0].MinDriver)
	}
	if len(said) > 0 {
		s.Said, err = said[0].toValue()
	}
	return s, wrapError(doing, err)
}

func (r capacityReader) DaemonByKey(id string) (ledger.Daemon, error) {
	const doing = "finding a daemon by its key"
	for _, column := range []string{"key_id", "token_id", "old_key_id"} {
		found, ok, err := findRow[daemonRow](r.newQuery().Where(column+" = ? AND "+column+" <> ''", id), doing)
		if err != nil || ok {
			return found, err
		}
	}
	return ledger.Daemon{}, wrapError(doing, ledger.ErrNotFound)
}

func (r capacityReader) Presence(nodeID string) (ledger.Presence, error) {
	return readRow[presenceRow](r.newQuery().Where("node_id = ?", nodeID), "reading what the daemon of "+nodeID+" said")
}

func (r capacityReader) Presences(after time.Time) ([]ledger.Presence, error) {
	return listRows[presenceRow](r.newQuery().Where("seen_at > ?", toMicros(after)).Order("seen_at, node_id"),
		"reading what daemons said")
}

func (r capacityReader) PresencesOf(nodeIDs []string) (map[string]ledger.Presence, error) {
	byNode := make(map[string]ledger.Presence, len(nodeIDs))
	for part := range slices.Chunk(nodeIDs, atOnce) {
		all, err := listRows[presenceRow](r.newQuery().Where("node_id IN ?", part), "reading what daemons said")
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			byNode[p.NodeID] = p
		}
	}
	return byNode, nil
}

func (r capacityReader) DaemonsSeen(nodeIDs []string) (map[string]time.Time, error) {
	const doing = "reading when daemons said something"
	byNode := make(map[string]time.Time, len(nodeIDs))
	for part := range slices.Chunk(nodeIDs, atOnce) {
		var all []presenceRow
		if err := r.newQuery().Select("node_id", "seen_at").Where("node_id IN ?", part).Find(&all).Error; err != nil {
			return nil, wrapError(doing, err)
		}
		for _, p := range all {
			byNode[p.NodeID] = toTime(p.Seen)
		}
	}
	return byNode, nil
}
