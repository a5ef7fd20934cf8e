package archtest

// boundaries are rules D2 to D12 as far as they speak of direct imports.
var boundaries = []Boundary{
	{
		Rule: "D2", Of: []string{"contract/proto/..."}, Own: []string{"contract/proto/..."},
		Why: "generated code of the streams between server and node needs its generator's libraries, and nothing of ours",
	},
	{
		Rule: "D2", Of: []string{"client/session"}, Own: []string{"client", "contract/..."},
		Why: "whoever opens sessions brings a WebSocket along; the rest of the SDK does not",
	},
	{
		Rule: "D2", Of: []string{"client/allocation"}, Own: []string{"client", "client/session", "contract/..."},
		StdOnly: true, Why: "what holds GPUs for a program asks the API and opens sessions, as the program could itself",
	},
	{
		Rule: "D12", Of: []string{"client/clienttest"},
		Own: []string{"client", "contract/...", "core/...", "internal/...", "ledger/...", "node/...", "provisioners/...",
			"server/...", "worker/..."},
		Why: "examples of the SDK run against the real server, its worker and its daemons",
	},
	{
		Rule: "D2", Of: []string{"contract/session/tether"}, Own: []string{"contract/session"}, StdOnly: true,
		Why: "both ends of a session carry it in the same way, so it must drag nothing into either",
	},
	{
		Rule: "D2", Of: []string{"contract/..."}, StdOnly: true,
		Why: "both sides of the trust boundary share the wire vocabulary, so it must drag nothing into either",
	},
	{
		Rule: "D2", Of: []string{"client/..."}, Own: []string{"contract/...", "internal/httpx"}, StdOnly: true,
		Why: "the SDK is compiled into other people's programs: it brings the vocabulary and nothing else",
	},
	{
		Rule: "D2", Of: []string{"cli/..."},
		Own: []string{"cli/...", "contract/...", "client", "client/session", "core/...", "ledger/recurrence",
			"internal/clock", "internal/httpx", "internal/obs", "internal/plaintext", "internal/ringfile",
			"internal/statefile", "internal/strictyaml"},
		Why: "the people's commands are a client like any other: they ask the API, and compute again what it says",
	},
	{
		Rule: "D4", Of: []string{"ledger/sqlledger/..."},
		Own: []string{"ledger", "ledger/sqlledger/...", "core/...", "migrations/...",
			"internal/clock", "internal/ids", "internal/obs", "internal/keys"},
		Why: "the SQL store knows the nouns and its tables, never who asks",
	},
	{
		Rule: "D12", Of: []string{"ledger/ledgertest/..."},
		Own: []string{"ledger", "core/...", "internal/clock", "internal/ids", "internal/keys"},
		Why: "a conformance suite knows the port, never an adapter",
	},
	{
		Rule: "D4", Of: []string{"ledger/ledgermetrics/..."}, Own: []string{"ledger", "core/...", "internal/clock"},
		Why: "what is counted is read through the port, whatever store is behind it",
	},
	{
		Rule: "D3", Of: []string{"ledger/..."},
		Own: []string{"ledger/...", "core/...", "internal/clock", "internal/ids", "internal/keys"},
		Why: "the verbs are the single source of truth: they must not learn of HTTP, queues, providers or SQL",
	},
	{
		Rule: "D5", Of: []string{"server/..."},
		Own: []string{"server/...", "core/...", "ledger", "ledger/verbs", "contract/...", "web",
			"internal/clock", "internal/ids", "internal/obs", "internal/httpx", "internal/keys", "internal/plaintext"},
		Why: "the server translates requests into verbs; work, providers and the customer's agent are not its business",
	},
	{
		Rule: "D12", Of: []string{"worker/queue/queuetest/..."},
		Own: []string{"worker/queue", "internal/clock", "internal/ids"},
		Why: "a conformance suite knows the port, never an adapter",
	},
	{
		Rule: "D6", Of: []string{"worker/..."},
		Own: []string{"worker/...", "core/...", "ledger", "ledger/verbs", "provisioners",
			"internal/clock", "internal/ids", "internal/obs", "internal/statefile"},
		Why: "workers reach machines through the port and truth through the ledger, and answer no requests",
	},
	{
		Rule: "D7", Of: []string{"provisioners"}, Own: []string{"core/money", "core/phrase", "core/capacity"},
		StdOnly: true,
		Why:     "the port is what adapters agree on; a provider's SDK in it would be everybody's",
	},
	{
		Rule: "D8", Of: []string{"provisioners/builtin"},
		Own: []string{"provisioners/...", "core/access", "core/money", "core/phrase", "core/capacity", "internal/clock"},
		Why: "the explicit list is the one place that knows the adapters",
	},
	{
		Rule: "D8", Of: []string{"provisioners/bootscript"}, Own: []string{"provisioners"}, StdOnly: true,
		Why: "how the daemon gets onto a machine is the same for every provider that runs a script at boot",
	},
	{
		Rule: "D8", Of: []string{"provisioners/..."}, Folder: true,
		Own: []string{"provisioners", "provisioners/bootscript", "core/access", "core/money", "core/phrase", "core/capacity",
			"internal/httpx", "internal/clock", "internal/ids", "internal/statefile"},
		Why: "an adapter knows the nouns, how addresses are written, and its provider, never a sibling",
	},
	{
		Rule: "D9", Of: []string{"agent/..."},
		Own: []string{"agent/...", "contract/...", "client", "prompts", "core/statemachine", "core/money",
			"core/phrase", "core/capacity", "core/calendar",
			"core/forecast", "core/backtest", "core/evidence",
			"internal/clock", "internal/ids", "internal/httpx", "internal/obs", "internal/statefile"},
		Why: "the agent runs at the customer's: it may hold nothing of the control plane but its vocabulary",
	},
	{
		Rule: "D9", Of: []string{"node/..."},
		Own: []string{"node/...", "contract/...", "client", "core/statemachine", "core/money", "core/phrase",
			"core/capacity", "core/job", "core/health",
			"internal/clock", "internal/ids", "internal/httpx", "internal/obs", "internal/plaintext", "internal/statefile"},
		Why: "the node daemon sits beside other people's jobs: it may hold nothing of the control plane but its " +
			"vocabulary",
	},
	{
		Rule: "D10", Of: []string{"migrations/...", "web/..."},
		Std: []string{"embed", "io/fs"}, StdOnly: true,
		Why: "they are content: embedded files, read by whoever knows what they mean",
	},
	{
		Rule: "D10", Of: []string{"prompts/..."}, StdOnly: true,
		Std: []string{"embed", "io/fs", "text/template", "bytes", "strings", "unicode/...", "strconv", "slices", "maps",
			"time", "fmt", "errors", "crypto/sha256", "encoding/hex", "encoding/json"},
		Why: "a prompt is a function of its numbers: templates, text and a hash, and nothing that reaches outside",
	},
	{
		Rule: "D10", Of: []string{"internal/keys"}, Own: []string{"internal/obs"},
		Why: "keys are secrets, and wear the type that keeps secrets out of logs; they know nothing else of ours",
	},
	{
		Rule: "D10", Of: []string{"internal/clock", "internal/ids", "internal/obs", "internal/httpx",
			"internal/archtest", "internal/forklock", "internal/leaktest", "internal/memory", "internal/pagetest",
			"internal/plaintext", "internal/ringfile", "internal/statefile/...", "internal/strictyaml"},
		Why: "the ground floor stands on nothing of ours, or somebody's import becomes a cycle",
	},
	{
		Rule: "D12", Of: []string{"internal/invariants"}, Own: []string{"core/...", "ledger"}, StdOnly: true,
		Why: "what must be true is said of rows alone, so that tests, the simulator and a running installation can " +
			"all ask",
	},
	{
		Rule: "D12", Of: []string{"test/proof"}, StdOnly: true,
		Why: "its tests drive the whole program; nothing may come to need it",
	},
	{
		Rule: "D12", Of: []string{"test/sim/..."},
		Own: []string{"core/...", "contract/...", "client", "ledger/...", "server/...", "worker/...",
			"provisioners/...",
			"agent/...", "node/...", "prompts", "migrations", "web", "internal/..."},
		Why: "the virtual world runs the real program, below its composition roots",
	},
	{
		Rule: "D11", Of: []string{"cmd/...", "bench/...", "test/chaos/..."}, Own: []string{"..."},
		Why: "composition roots pick the adapters",
	},
}
