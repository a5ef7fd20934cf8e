//go:build !race

package worker_test

// crashStride is between the crash points that are tried: here all are.
const crashStride = 1

// histories is how many are lived through by chance.
const histories = 24
