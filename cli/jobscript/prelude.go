package jobscript

import (
	_ "embed"
	"strings"
)

//go:embed prelude.sh
var preludeText string

// prelude stands before the first line of a script of Slurm, on that line: what a shell says of lines stays true. It
// defines srun, which starts the tasks of its node, and as much of scontrol as tells the nodes' addresses; and it says
// where a job has less memory than it asked for.
var prelude = strings.Join(strings.Split(strings.TrimSpace(preludeText), "\n"), " ") + " "
