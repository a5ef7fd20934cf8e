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
	weight            int // how often it comes, beside the others
	shortest, longest time.Duration
	begin             begin
}

// begin breaks something that is not broken, and returns what it was and how to
// mend it. Nothing is returned when there was nothing to break.
type begin func(context.Context, *blow) (what string, end mend, err error)

// mend ends a fault. Nil: it ends by itself.
type mend func(context.Context) error

const (
	second = time.Second
	moment = 300 * time.Millisecond
)

// kinds are all faults. A pause is longer than the lease of a task, and
// PostgreSQL is away for as long as a failover takes.
var kinds = map[Kind]nature{
	"kill-server":       {3, moment, 5 * second, process(server, kill)},
	"kill-worker":       {4, moment, 5 * second, process(worker, kill)},
	"stop-server":       {1, moment, 3 * second, process(server, stop)},
	"stop-worker":       {1, moment, 3 * second, process(worker, stop)},
	"pause-server":      {2, 5 * second, 40 * second, process(server, pause)},
	"pause-worker":      {3, 5 * second, 40 * second, process(worker, pause)},
	"flush-redis":       {2, 0, 0, flushRedis},
	"kill-redis":        {2, moment, 6 * second, killRedis},
	"crash-postgres":    {2, moment, 6 * second, crashPostgres},
	"cut-postgres":      {2, 0, 4 * second, proxy(site.PostgresProxy, cut)},
	"cut-redis":         {1, 0, 4 * second, proxy(site.RedisProxy, cut)},
	"cut-cloud":         {2, 0, 6 * second, proxy(site.CloudProxy, cut)},
	"halfopen-postgres": {1, 2 * second, 8 * second, proxy(site.PostgresProxy, halfOpen)},
	"halfopen-redis":    {1, 2 * second, 8 * second, proxy(site.RedisProxy, halfOpen)},
	"halfopen-cloud":    {2, 2 * second, 10 * second, proxy(site.CloudProxy, halfOpen)},
	"swallow-postgres":  {1, 2 * second, 8 * second, proxy(site.PostgresProxy, swallow)},
	"swallow-redis":     {1, 2 * second, 8 * second, proxy(site.RedisProxy, swallow)},
	"truncate-postgres": {1, second, 4 * second, proxy(site.PostgresProxy, truncate)},
	"truncate-cloud":    {1, second, 5 * second, proxy(site.CloudProxy, truncate)},
	"delay-postgres":    {1, 2 * second, 8 * second, proxy(site.PostgresProxy, delay)},
	"delay-redis":       {1, 2 * second, 8 * second, proxy(site.RedisProxy, delay)},
	"delay-cloud":       {1, 2 * second, 10 * second, proxy(site.CloudProxy, delay)},
	"lost-launch":       {3, 0, 0, cloud(lostLaunch)},
	"lost-terminate":    {2, 0, 0, cloud(lostTerminate)},
	"undead":            {2, 0, 0, cloud(undead)},
	"throttle":          {2, 0, 0, cloud(throttle)},
	"server-errors":     {2, 0, 0, cloud(serverErrors)},
	"lists-lag":         {2, 3 * second, 10 * second, cloud(listsLag)},
	"lists-garbled":     {2, 0, 0, cloud(listsGarbled)},
	"lists-empty":       {1, 0, 0, cloud(listsEmpty)},
	"sold-out":          {1, 2 * second, 8 * second, cloud(soldOut)},
	"reclaim":           {3, 0, 0, reclaim},
}

// Kinds returns the names of all faults, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }
