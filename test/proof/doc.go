// Package proof holds the tests that drive the whole program, over HTTP or
// through the ledger's verbs, and then check the results: what was admitted at
// a limit, histories of concurrent clients checked for linearizability, the
// same history on both databases, and random histories, in which package
// invariants must hold after every step. It exports nothing.
package proof
