package archtest

var (
	// sqlDrivers leave database/sql out: the uuid package imports its interfaces,
	// which open nothing without a driver.
	sqlDrivers = []string{"gorm.io/gorm/...", "gorm.io/driver/postgres/...",
		"gorm.io/driver/sqlite/...", "github.com/jackc/pgx/v5/...", "modernc.org/sqlite/...",
		"github.com/pressly/goose/v3/..."}
	queueImports = []string{"github.com/hibiken/asynq/...", "github.com/redis/go-redis/v9/..."}
	webImports   = []string{"github.com/gin-gonic/gin/...", "github.com/danielgtaylor/huma/v2/..."}
)

var bans = []Ban{
	{
		Rule: "D1", In: []string{"core/..."},
		Imports: []string{"os/...", "net/...", "database/sql/...", "log/...", "context", "math/rand/...", "crypto/rand",
			"syscall", "unsafe"},
		Why: "core does no I/O, waits for nothing and rolls no dice: time and chance are arguments",
	},
	{
		Rule: "D2", In: []string{"contract/..."}, Imports: []string{"net/http/..."},
		Except: []string{"contract/proto/..."},
		Why:    "the vocabulary is not a transport",
	},
	{
		Rule: "D4", In: []string{"..."}, Except: []string{"ledger/sqlledger/...", "bench/...", "test/chaos/..."},
		Imports: append([]string{"database/sql/..."}, sqlDrivers...),
		Why: "one package speaks SQL: tenant scoping, fences and the two dialects are kept in one place; " +
			"benchmarks and chaos have yardsticks, and count what the program says it wrote",
	},
	{
		Rule: "D5", In: []string{"..."}, Except: []string{"server/...", "bench/..."}, Imports: webImports,
		Why: "one package tree routes HTTP, with one renderer of problems; a benchmark has yardsticks",
	},
	{
		Rule: "D6", In: []string{"..."}, Except: []string{"worker/queue/asynqueue/..."}, Imports: queueImports,
		Why: "asynq only rings the bell; behind the port it can be replaced, and Redis may be lost at any moment",
	},
	{
		Rule: "D12", In: []string{"..."}, Except: []string{"cmd/forewarm-sim/...", "test/sim/..."},
		Imports: []string{modulePath + "/test/sim/..."},
		Why:     "the simulator owns time; nothing that ships may",
	},
	{
		Rule: "D12", In: []string{"..."}, Except: []string{"...test"}, Imports: []string{"testing/..."},
		Why: "test machinery belongs in _test.go files and in conformance suites",
	},
	{
		Rule: "D12", In: []string{"..."}, Except: []string{"...test"},
		Imports: []string{modulePath + "/ledger/ledgertest/...", modulePath + "/worker/queue/queuetest/...",
			modulePath + "/provisioners/provisionertest/..."},
		Why: "conformance suites are for _test.go files only",
	},
}

// modulePath is the path that the rules' own packages live under.
const modulePath = "github.com/forewarm/forewarm"

var closures = []Closure{
	{
		Rule: "D9", Of: []string{"cmd/forewarm-agent", "agent/..."},
		Own: []string{"ledger/...", "server/...", "worker/...", "provisioners/...", "migrations/...", "web/..."},
		Imports: append(append(append([]string{"github.com/aws/aws-sdk-go-v2/...", "k8s.io/client-go/..."},
			sqlDrivers...), queueImports...), webImports...),
		Why: "who installs the agent must be able to see that it cannot touch a database, a queue or a cloud",
	},
	{
		Rule: "D9", Of: []string{"cmd/forewarm-node", "node/..."},
		Own: []string{"ledger/...", "server/...", "worker/...", "provisioners/...", "migrations/...", "agent/..."},
		Imports: append(append(append([]string{"github.com/aws/aws-sdk-go-v2/...", "k8s.io/client-go/..."},
			sqlDrivers...), queueImports...), webImports...),
		Why: "what runs as root beside other people's jobs must be seen to touch no database, queue or cloud",
	},
	{
		Rule: "D12", Of: []string{"cmd/..."}, Imports: []string{"testing/..."},
		Own: []string{"provisioners/aws/ec2test/...", "provisioners/gcp/gcetest/...",
			"provisioners/kubernetes/apitest/..."},
		Why: "a shipped binary carries no test machinery, no test flags and no fake cloud",
	},
}

var timeNames = []string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc"}

var calls = []CallBan{
	{
		Rule: "D1", Path: "time", In: []string{"core/..."}, Names: timeNames,
		Why: "core is given its time, so that a decision can be replayed",
	},
	{
		Rule: "D4", Path: "core/reservation", Names: []string{"Restore"}, In: []string{"..."},
		Except: []string{"ledger/sqlledger/..."},
		Why:    "only the store may set a state without a transition: it gives back what was written",
	},
	{
		Rule: "D4", Path: "core/node", Names: []string{"Restore"}, In: []string{"..."},
		Except: []string{"ledger/sqlledger/..."},
		Why:    "only the store may set a state without a transition: it gives back what was written",
	},
	{
		Rule: "D9", Path: "net/http", In: []string{"agent/...", "cmd/forewarm-agent/..."},
		Except: []string{"agent/egress/..."},
		Names:  []string{"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
		Why: "one factory builds the agent's HTTP clients, so one allow-list and one byte ledger see everything " +
			"that leaves",
	},
}
