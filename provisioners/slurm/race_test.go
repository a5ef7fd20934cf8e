//go:build race

package slurm_test

// played is how many histories are played: every command is this binary, which
// starts slowly with the race detector.
const played = 1
