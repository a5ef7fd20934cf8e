package jobscript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// translation puts flags of sbatch into flags of forewarm run.
type translation struct {
	getenv func(string) string
	// submission is where to put what sbatch does itself; nil: another command submits.
	submission *Submission

	flags  []string // of scripts
	last   []string // of the command line, which count before lines with #FW
	notes  []string
	flag   string // that is being put
	onLine bool   // it was given on the command line
	left   []leftOut

	nodes, gpus, perNode              int
	tasks, tasksPerNode, gpusPerTask  int
	countedOnLine                     bool
	memory, memoryPerCPU, memoryByGPU int           // MiB
	limit                             time.Duration // 0: it was not said
	signal                            signal
}

// leftOut are flags that change nothing here, for one reason.
type leftOut struct {
	flags []string
	why   string
}

// counts are the flags that together say how many of something a job has.
var counts = []string{"nodes", "gpus", "gpus-per-node", "gpus-per-task", "gres", "ntasks", "ntasks-per-node"}

// putAll translates flags.
func (t *translation) putAll(all []given) error {
	for _, g := range all {
		t.flag, t.onLine = g.flag.long, g.line == 0
		t.countedOnLine = t.countedOnLine || t.onLine && slices.Contains(counts, t.flag)
		err := g.flag.put(t, g.value)
		switch {
		case err != nil && t.onLine:
			return fmt.Errorf("--%s: %w", t.flag, err)
		case err != nil:
			return fmt.Errorf("line %d: --%s: %w", g.line, t.flag, err)
		}
	}
	return nil
}

func (t *translation) add(word string) {
	if t.onLine {
		t.last = append(t.last, word)
	} else {
		t.flags = append(t.flags, word)
	}
}

func (t *translation) put(flag, value string) { t.add("--" + flag + "=" + value) }

// leaveOut keeps that the flag which is being put changes nothing.
func (t *translation) leaveOut(why string) {
	flag := "--" + t.flag
	for i := range t.left {
		if t.left[i].why == why {
			if !slices.Contains(t.left[i].flags, flag) {
				t.left[i].flags = append(t.left[i].flags, flag)
			}
			return
		}
	}
	t.left = append(t.left, leftOut{[]string{flag}, why})
}

// note keeps what the user should know, once.
func (t *translation) note(text string) {
	if !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// allNotes is what the user should know.
func (t *translation) allNotes() []string {
	all := slices.Clone(t.notes)
	for _, l := range t.left {
		all = append(all, "left out: "+strings.Join(l.flags, ", ")+": "+l.why)
	}
	return all
}

// finish puts what several flags say together: what is said of each node is of one node, unless there is a number
// of them.
func (t *translation) finish() error {
	t.putCheckpoint()
	t.onLine = t.countedOnLine
	if err := t.layTasks(); err != nil {
		return err
	}
	if err := t.checkPerNode(); err != nil {
		return err
	}
	if t.perNode > 0 && t.nodes == 0 && t.gpus == 0 {
		t.gpus, t.perNode = t.perNode, 0
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"gpus", t.gpus}, {"nodes", t.nodes}, {"gpus-per-node", t.perNode}} {
		if f.n > 0 {
			t.put(f.name, strconv.Itoa(f.n))
		}
	}
	t.putVariables()
	return nil
}

// checkPerNode refuses numbers of GPUs of which one says another than the others, as Slurm does.
func (t *translation) checkPerNode() error {
	switch {
	case t.gpus == 0 || t.perNode == 0:
		return nil
	case t.gpus%t.perNode != 0:
		return fmt.Errorf("--gpus: %d is no multiple of --gpus-per-node: %d", t.gpus, t.perNode)
	case t.nodes > 0 && t.gpus != t.nodes*t.perNode:
		return fmt.Errorf("--gpus: %d are not %d on each of %d nodes", t.gpus, t.perNode, t.nodes)
	}
	return nil
}

// layTasks divides tasks over nodes, and GPUs over tasks.
func (t *translation) layTasks() error {
	n, per, nodes := t.tasks, t.tasksPerNode, max(t.nodes, 1)
	switch {
	case n == 0 && per == 0:
		t.tasksPerNode = 1
		return t.layGPUs()
	case per == 0:
		per = (n + nodes - 1) / nodes
	case n > 0 && t.nodes == 0:
		per = min(n, per)
		nodes = (n + per - 1) / per
	}
	if n == 0 {
		n = per * nodes
	}
	if n != per*nodes {
		return fmt.Errorf("--ntasks: %d tasks on %d nodes cannot be had: each node has as many as the others", n, nodes)
	}
	if n > 1 {
		t.nodes = nodes // tasks of a number of GPUs alone could be on any number of nodes
	}
	t.tasks, t.tasksPerNode = n, per
	return t.layGPUs()
}

// layGPUs is how many GPUs the tasks have.
func (t *translation) layGPUs() error {
	each := t.gpusPerTask * t.tasksPerNode
	switch {
	case each == 0:
	case t.gpus > 0 && t.gpus != each*max(t.nodes, 1) || t.perNode > 0 && t.perNode != each:
		return fmt.Errorf("--gpus-per-task: %d tasks on each node with %d GPUs each are not as many as is said beside it",
			t.tasksPerNode, t.gpusPerTask)
	case t.gpus == 0 && t.nodes > 1:
		t.perNode = each
	case t.gpus == 0 && t.perNode == 0:
		t.gpus = each
	}
	return nil
}

// putVariables tells the script what it asked for, as Slurm does. One task is no number of tasks: programs that find
// SLURM_NTASKS, such as PyTorch Lightning, take themselves for tasks of srun, and start no processes of their own.
func (t *translation) putVariables() {
	tasks, perNode := t.tasks, t.tasksPerNode
	if tasks < 2 {
		tasks, perNode = 0, 0
	}
	for _, v := range []struct {
		name string
		n    int
	}{{"NTASKS", tasks}, {"NPROCS", tasks}, {"NTASKS_PER_NODE", perNode}, {"GPUS_PER_TASK", t.gpusPerTask},
		{"MEM_PER_NODE", t.memory}, {"MEM_PER_CPU", t.memoryPerCPU}, {"MEM_PER_GPU", t.memoryByGPU}} {
		if v.n > 0 {
			t.put("env", "SLURM_"+v.name+"="+strconv.Itoa(v.n))
		}
	}
}
