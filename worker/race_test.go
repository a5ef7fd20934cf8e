//go:build race

package worker_test

// crashStride is between the crash points that are tried: the race detector makes
// each several times as long, and what it looks for does not hang on which.
const crashStride = 4

// histories is how many are lived through by chance: one with a source, one with
// two.
const histories = 2
