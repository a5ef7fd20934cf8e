package jobscript

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

func (t *translation) putTasks(value string) (err error) {
	t.tasks, err = parseCount(value)
	return err
}

func (t *translation) putTasksPerNode(value string) (err error) {
	t.tasksPerNode, err = parseCount(value)
	return err
}

func (t *translation) putPerTask(value string) (err error) {
	t.gpusPerTask, err = t.countGPUs(value)
	return err
}

// putExclusive has whole nodes: others have no GPU there, and what is booked there are GPUs.
func (t *translation) putExclusive(value string) error {
	if value != "" {
		return fmt.Errorf("%s cannot be had: --exclusive alone keeps everybody off the nodes", value)
	}
	t.add("--exclusive")
	return nil
}

func (t *translation) putOpenMode(value string) error {
	switch {
	case value != "append" && value != "truncate":
		return fmt.Errorf("%q is neither append nor truncate", value)
	case t.submission == nil:
		t.leaveOut(whereOutput)
	default:
		t.submission.Append = value == "append"
	}
	return nil
}

// byGPUs is what a job has of memory.
const byGPUs = "where the node bounds memory, a job has that of its nodes in proportion to its GPUs, which " +
	"FOREWARM_MEMORY_BYTES says there"

func (t *translation) putMemory(value string) error { return t.readMemory(value, &t.memory) }

func (t *translation) putMemoryPerCPU(value string) error {
	return t.readMemory(value, &t.memoryPerCPU)
}

func (t *translation) putMemoryPerGPU(value string) error { return t.readMemory(value, &t.memoryByGPU) }

// readMemory reads a size, for what tells the script what it asked for.
func (t *translation) readMemory(value string, to *int) (err error) {
	if *to, err = parseSize(value); err == nil {
		t.leaveOut(byGPUs)
	}
	return err
}

// slurmSize has the forms of Slurm's sizes: a number of MiB, or of what its letter says.
var slurmSize = regexp.MustCompile(`^(\d{1,9})([KMGTkmgt]?)[Bb]?$`)

// parseSize reads a size in MiB; 0 is all that there is.
func parseSize(text string) (int, error) {
	m := slurmSize.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is no size: write a number of MiB, or with K, M, G or T", text)
	}
	n, _ := strconv.Atoi(m[1]) // digits alone, and few of them
	switch m[2] {
	case "K", "k":
		return (n + 1023) / 1024, nil
	case "G", "g":
		return n << 10, nil
	case "T", "t":
		if n > 1<<20 {
			return 0, errors.New("no node has so much memory")
		}
		return n << 20, nil
	}
	return n, nil
}
