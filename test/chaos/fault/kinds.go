package fault

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/test/chaos/site"
)

// Kind names a fault.
type Kind string

// nature is what is known of a kind of fault.
type nature struct {
	weight            int // how often it comes, beside the others; 0: in long runs alone
	shortest, longest time.Duration
	begin             begin
}

// begin breaks something that is not broken, and returns what it was and how to
// mend it. Nothing is returned when there was nothing to break.
type begin func(context.Context, *injection) (what string, end undo, err error)

// undo ends a fault. Nil: it ends by itself.
type undo func(context.Context) error

const (
	second = time.Second
	moment = 300 * time.Millisecond
)

// A long run has a daemon freeze: its node is silent for so long that its holders' leases end, their proofs are late,
// and it is taken out of use.
const (
	freeze     Kind = "freeze-daemon"
	frozen          = 5 * time.Minute
	freezeEach      = 15 * time.Minute
)

// kinds are all faults. A pause is longer than the lease of a task, and
// PostgreSQL is away for as long as a failover takes. A daemon is back within the time that
// it has to prove its node clean, so that GPUs go from hand to hand and not into quarantine.
var kinds = map[Kind]nature{
	"kill-server":       {3, moment, 5 * second, breakProcess(serversOf, killProcess)},
	"kill-worker":       {4, moment, 5 * second, breakProcess(workersOf, killProcess)},
	"stop-server":       {1, moment, 3 * second, breakProcess(serversOf, stopProcess)},
	"stop-worker":       {1, moment, 3 * second, breakProcess(workersOf, stopProcess)},
	"pause-server":      {2, 5 * second, 40 * second, breakProcess(serversOf, pauseProcess)},
	"pause-worker":      {3, 5 * second, 40 * second, breakProcess(workersOf, pauseProcess)},
	"flush-redis":       {2, 0, 0, flushRedis},
	"kill-redis":        {2, moment, 6 * second, killRedis},
	"crash-postgres":    {2, moment, 6 * second, crashPostgres},
	"cut-postgres":      {2, 0, 4 * second, breakProxy(site.PostgresProxy, cutConnections)},
	"cut-redis":         {1, 0, 4 * second, breakProxy(site.RedisProxy, cutConnections)},
	"cut-cloud":         {2, 0, 6 * second, breakProxy(site.CloudProxy, cutConnections)},
	"halfopen-postgres": {1, 2 * second, 8 * second, breakProxy(site.PostgresProxy, halfOpen)},
	"halfopen-redis":    {1, 2 * second, 8 * second, breakProxy(site.RedisProxy, halfOpen)},
	"halfopen-cloud":    {2, 2 * second, 10 * second, breakProxy(site.CloudProxy, halfOpen)},
	"swallow-postgres":  {1, 2 * second, 8 * second, breakProxy(site.PostgresProxy, swallowData)},
	"swallow-redis":     {1, 2 * second, 8 * second, breakProxy(site.RedisProxy, swallowData)},
	"truncate-postgres": {1, second, 4 * second, breakProxy(site.PostgresProxy, truncateData)},
	"truncate-cloud":    {1, second, 5 * second, breakProxy(site.CloudProxy, truncateData)},
	"delay-postgres":    {1, 2 * second, 8 * second, breakProxy(site.PostgresProxy, delayData)},
	"delay-redis":       {1, 2 * second, 8 * second, breakProxy(site.RedisProxy, delayData)},
	"delay-cloud":       {1, 2 * second, 10 * second, breakProxy(site.CloudProxy, delayData)},
	"cut-peers":         {2, 0, 4 * second, breakPeers(cutConnections)},
	"halfopen-peers":    {2, 2 * second, 8 * second, breakPeers(halfOpen)},
	"swallow-peers":     {1, 2 * second, 8 * second, breakPeers(swallowData)},
	"truncate-peers":    {1, second, 4 * second, breakPeers(truncateData)},
	"delay-peers":       {1, 2 * second, 8 * second, breakPeers(delayData)},
	"kill-daemon":       {4, moment, 6 * second, breakProcess(daemonsOf, killProcess)},
	"pause-daemon":      {4, 3 * second, 30 * second, breakProcess(daemonsOf, pauseProcess)},
	freeze:              {0, frozen, frozen, breakProcess(daemonsOf, pauseProcess)},
	"cut-daemon":        {3, 0, 10 * second, breakDaemons(cutConnections)},
	"halfopen-daemon":   {2, 2 * second, 15 * second, breakDaemons(halfOpen)},
	"swallow-daemon":    {2, 2 * second, 15 * second, breakDaemons(swallowData)},
	"truncate-daemon":   {1, second, 5 * second, breakDaemons(truncateData)},
	"delay-daemon":      {1, 2 * second, 10 * second, breakDaemons(delayData)},
	"lost-launch":       {3, 0, 0, disturbCloud(lostLaunch)},
	"lost-terminate":    {2, 0, 0, disturbCloud(lostTerminate)},
	"undead":            {2, 0, 0, disturbCloud(ignoreDeletes)},
	"throttle":          {2, 0, 0, disturbCloud(throttleCalls)},
	"server-errors":     {2, 0, 0, disturbCloud(serverErrors)},
	"lists-lag":         {2, 3 * second, 10 * second, disturbCloud(listsLag)},
	"lists-garbled":     {2, 0, 0, disturbCloud(listsGarbled)},
	"lists-empty":       {1, 0, 0, disturbCloud(listsEmpty)},
	"sold-out":          {1, 2 * second, 8 * second, disturbCloud(soldOut)},
	"reclaim":           {3, 0, 0, reclaimSpot},
}

// Kinds returns the names of all faults that every run has, sorted.
func Kinds() []Kind {
	all := slices.Sorted(maps.Keys(kinds))
	return slices.DeleteFunc(all, func(k Kind) bool { return kinds[k].weight == 0 })
}
