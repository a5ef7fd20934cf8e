//go:build !race

package slurm_test

const played = 3
