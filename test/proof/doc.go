// Package proof holds the tests that drive the whole program, over HTTP or
// through the ledger's verbs, and then recount: what was admitted at the edge of
// a limit, histories of concurrent clients checked for linearizability, the same
// history on both databases, and random histories after whose every step the
// statements of package invariants must hold. It exports nothing.
package proof
