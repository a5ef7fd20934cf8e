package sqlledger

import (
	"errors"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

type poolRow struct {
	Head          rowHead `gorm:"embedded"`
	Name          string  `gorm:"column:name"`
	Provisioner   string  `gorm:"column:provisioner"`
	Region        string  `gorm:"column:region"`
	Type          string  `gorm:"column:type"`
	Model         string  `gorm:"column:model"`
	PerNode       int     `gorm:"column:per_node"`
	MemoryMiB     int     `gorm:"column:memory_mib"`
	NodeCPUs      int     `gorm:"column:node_cpus"`
	NodeMemory    int     `gorm:"column:node_memory"`
	OnlineShare   int     `gorm:"column:online_share"`
	BorrowIdle    bool    `gorm:"column:borrow_idle"`
	Price         int64   `gorm:"column:price"`
	MinBilling    int64   `gorm:"column:min_billing"`
	Alternates    string  `gorm:"column:alternates"`
	MinNodes      int     `gorm:"column:min_nodes"`
	MaxNodes      int     `gorm:"column:max_nodes"`
	WarmHold      int64   `gorm:"column:warm_hold"`
	IdleRelease   int64   `gorm:"column:idle_release"`
	MaxLease      int64   `gorm:"column:max_lease"`
	Cleaning      int64   `gorm:"column:cleaning"`
	IdleWarn      int64   `gorm:"column:idle_warn"`
	IdleReclaim   int64   `gorm:"column:idle_reclaim"`
	MaxCreates    int     `gorm:"column:max_creates"`
	CreateWindow  int64   `gorm:"column:create_window"`
	Paused        bool    `gorm:"column:paused"`
	RecoveringAt  int64   `gorm:"column:recovering_at"`
	RecoveringWhy string  `gorm:"column:recovering_why"`
	Simulated     bool    `gorm:"column:simulated"`
	Observed      bool    `gorm:"column:observed"`
	Holders       string  `gorm:"column:holders"`
	DevicesOnly   bool    `gorm:"column:devices_only"`
	Isolation     string  `gorm:"column:isolation"`
	SharesPerGPU  int     `gorm:"column:shares_per_gpu"`
	MinDriver     string  `gorm:"column:min_driver"`
	Labels        string  `gorm:"column:labels"`
	Taints        string  `gorm:"column:taints"`
	Learned       string  `gorm:"column:learned"`
	Created       int64   `gorm:"column:created_at"`
	Deleted       int64   `gorm:"column:deleted_at"`
	Revision      int64   `gorm:"column:revision;<-:create"`
	Changes       int64   `gorm:"column:changes;<-:create"`
	Definition    int     `gorm:"column:definition_version"`
}

func (poolRow) TableName() string  { return "pools" }
func (r poolRow) rowHead() rowHead { return r.Head }

func poolToRow(p ledger.Pool) poolRow {
	return poolRow{
		Head: nextVersion(p.ID, p.Version), Name: p.Name, Provisioner: p.Provisioner, Region: p.Region,
		Type: p.Type, Model: p.Model, PerNode: p.PerNode, MemoryMiB: p.MemoryMiB, Price: int64(p.Price),
		NodeCPUs: p.NodeCPUs, NodeMemory: p.NodeMemoryMiB, OnlineShare: p.OnlineShare, BorrowIdle: p.BorrowIdle,
		MinBilling: p.MinBilling.Microseconds(), Alternates: packAlternates(p.Alternates),
		MinNodes: p.MinNodes, MaxNodes: p.MaxNodes, WarmHold: p.Timers.WarmHold.Microseconds(),
		IdleRelease: p.Timers.IdleRelease.Microseconds(), MaxLease: p.Timers.MaxLease.Microseconds(),
		Cleaning: p.Timers.Cleaning.Microseconds(),
		IdleWarn: p.Timers.IdleWarn.Microseconds(), IdleReclaim: p.Timers.IdleReclaim.Microseconds(),
		MaxCreates: p.MaxCreates, CreateWindow: p.CreateWindow.Microseconds(),
		RecoveringAt: toMicros(p.Recovery.Since), RecoveringWhy: p.Recovery.Reason,
		Paused: p.Paused, Simulated: p.Simulated, Observed: p.Observed, Holders: packHolders(p.Holders),
		DevicesOnly: p.DevicesOnly, Isolation: string(p.Isolation), SharesPerGPU: p.SharesPerGPU,
		MinDriver: string(p.MinDriver), Labels: packLabels(p.Labels), Taints: packTaints(p.Taints),
		Learned: packLearned(p.Learned),
		Created: toMicros(p.CreatedAt), Deleted: toMicros(p.DeletedAt), Revision: p.Revision, Changes: p.Changes,
		Definition: p.DefinitionVersion,
	}
}

func (r poolRow) toValue() (ledger.Pool, error) {
	learned, err := unpackLearned(r.Learned)
	alternates, damaged := unpackAlternates(r.Alternates)
	holders, damage := unpackHolders(r.Holders)
	labels, err1 := unpackOptional[map[string]string]("labels", r.Labels)
	taints, err2 := unpackOptional[[]string]("taints", r.Taints)
	return ledger.Pool{
		Pool: capacity.Pool{
			ID: r.Head.ID, Name: r.Name, Provisioner: r.Provisioner, Region: r.Region, Type: r.Type,
			Model: r.Model, PerNode: r.PerNode, MemoryMiB: r.MemoryMiB, Price: money.MicroUSD(r.Price),
			MinBilling: toDuration(r.MinBilling), Alternates: alternates, MinNodes: r.MinNodes, MaxNodes: r.MaxNodes,
			Timers: capacity.Timers{WarmHold: toDuration(r.WarmHold), IdleRelease: toDuration(r.IdleRelease),
				MaxLease: toDuration(r.MaxLease), Cleaning: toDuration(r.Cleaning),
				IdleWarn: toDuration(r.IdleWarn), IdleReclaim: toDuration(r.IdleReclaim)},
			NodeCPUs: r.NodeCPUs, NodeMemoryMiB: r.NodeMemory, OnlineShare: r.OnlineShare, BorrowIdle: r.BorrowIdle,
			MaxCreates: r.MaxCreates, CreateWindow: toDuration(r.CreateWindow), Paused: r.Paused,
			Simulated: r.Simulated, Observed: r.Observed, Holders: holders,
			DevicesOnly: r.DevicesOnly, Isolation: capacity.Isolation(r.Isolation), SharesPerGPU: r.SharesPerGPU,
			MinDriver: capacity.Driver(r.MinDriver), Labels: labels, Taints: taints,
		},
		Learned:   learned,
		Recovery:  ledger.Recovery{Since: toTime(r.RecoveringAt), Reason: r.RecoveringWhy},
		CreatedAt: toTime(r.Created), DeletedAt: toTime(r.Deleted), Revision: r.Revision, Changes: r.Changes,
		Version: r.Head.Version, DefinitionVersion: r.Definition,
	}, errors.Join(err, damaged, damage, err1, err2)
}

type nodeRow struct {
	Head        rowHead `gorm:"embedded"`
	PoolID      string  `gorm:"column:pool_id"`
	Slot        int     `gorm:"column:slot"`
	Generation  int     `gorm:"column:generation"`
	Token       string  `gorm:"column:token"`
	ProviderID  string  `gorm:"column:provider_id"`
	Address     string  `gorm:"column:address"`
	Simulated   bool    `gorm:"column:simulated"`
	Reason      string  `gorm:"column:reason"`
	Provisioner string  `gorm:"column:provisioner"`
	Region      string  `gorm:"column:region"`
	Type        string  `gorm:"column:type"`
	Price       int64   `gorm:"column:price"`
	MinBilling  int64   `gorm:"column:min_billing"`
	BilledFrom  int64   `gorm:"column:billed_from"`
	BilledUntil int64   `gorm:"column:billed_until"`
	Expires     int64   `gorm:"column:expires_at"`
	Quarantine  string  `gorm:"column:quarantine"`
	Taken       string  `gorm:"column:taken"`
	Labels      string  `gorm:"column:labels"`
	Taints      string  `gorm:"column:taints"`
	Celsius     int     `gorm:"column:celsius"`
	HotUntil    int64   `gorm:"column:hot_until"`
	Isolation   string  `gorm:"column:isolation"`
	State       string  `gorm:"column:state"`
	Requested   int64   `gorm:"column:requested_at"`
	Booting     int64   `gorm:"column:booting_at"`
	Ready       int64   `gorm:"column:ready_at"`
	IdleSince   int64   `gorm:"column:idle_since"`
	Retired     int64   `gorm:"column:retired_at"`
	Absent      int64   `gorm:"column:absent_at"`
	Gone        int64   `gorm:"column:gone_at"`
}

func (nodeRow) TableName() string  { return "nodes" }
func (r nodeRow) rowHead() rowHead { return r.Head }

func nodeToRow(n node.Node) nodeRow {
	return nodeRow{
		Head: nextVersion(n.ID, n.Version), PoolID: n.PoolID, Slot: n.Slot, Generation: n.Generation,
		Token: n.Token, ProviderID: n.ProviderID, Address: n.Address, Simulated: n.Simulated,
		Reason: n.Reason, State: string(n.State()), Requested: toMicros(n.RequestedAt),
		Booting: toMicros(n.BootingAt), Ready: toMicros(n.ReadyAt), IdleSince: toMicros(n.IdleSince),
		Retired: toMicros(n.RetiredAt), Absent: toMicros(n.AbsentAt), Gone: toMicros(n.GoneAt),
		Provisioner: n.Offering.Provisioner, Region: n.Offering.Region, Type: n.Offering.Type,
		Price: int64(n.Offering.Price), MinBilling: n.Offering.MinBilling.Microseconds(),
		BilledFrom: toMicros(n.BilledFrom), BilledUntil: toMicros(n.BilledUntil), Expires: toMicros(n.ExpiresAt),
		Quarantine: packQuarantine(n.Quarantine), Taken: n.Taken, Labels: packLabels(n.Labels), Taints: packTaints(n.Taints),
		Celsius: n.Heat.Celsius, HotUntil: toMicros(n.Heat.HotUntil), Isolation: string(n.Isolation),
	}
}

// toValue returns the node without its devices, which are rows of their own.
func (r nodeRow) toValue() (node.Node, error) {
	quarantine, err := unpackQuarantine(r.Quarantine)
	labels, err1 := unpackOptional[map[string]string]("labels", r.Labels)
	taints, err2 := unpackOptional[[]string]("taints", r.Taints)
	if err := errors.Join(err, err1, err2); err != nil {
		return node.Node{}, err
	}
	return node.Restore(node.Node{
		ID: r.Head.ID, PoolID: r.PoolID, Slot: r.Slot, Generation: r.Generation, Token: r.Token,
		ProviderID: r.ProviderID, Address: r.Address, Simulated: r.Simulated, Reason: r.Reason,
		RequestedAt: toTime(r.Requested), BootingAt: toTime(r.Booting), ReadyAt: toTime(r.Ready),
		IdleSince: toTime(r.IdleSince), RetiredAt: toTime(r.Retired), AbsentAt: toTime(r.Absent),
		GoneAt: toTime(r.Gone), Version: r.Head.Version,
		Offering: capacity.Offering{Provisioner: r.Provisioner, Region: r.Region, Type: r.Type,
			Price: money.MicroUSD(r.Price), MinBilling: toDuration(r.MinBilling)},
		BilledFrom: toTime(r.BilledFrom), BilledUntil: toTime(r.BilledUntil), ExpiresAt: toTime(r.Expires),
		Quarantine: quarantine, Taken: r.Taken, Labels: labels, Taints: taints,
		Heat:      node.Heat{Celsius: r.Celsius, HotUntil: toTime(r.HotUntil)},
		Isolation: capacity.Isolation(r.Isolation),
	}, node.State(r.State))
}

type gpuRow struct {
	NodeID    string `gorm:"column:node_id;primaryKey"`
	UUID      string `gorm:"column:uuid;primaryKey"`
	Index     int    `gorm:"column:idx"`
	Model     string `gorm:"column:model"`
	MemoryMiB int    `gorm:"column:memory_mib"`
}

func (gpuRow) TableName() string { return "gpus" }

func (r gpuRow) toDevice() capacity.Device {
	return capacity.Device{UUID: r.UUID, Index: r.Index, Model: r.Model, MemoryMiB: r.MemoryMiB}
}
