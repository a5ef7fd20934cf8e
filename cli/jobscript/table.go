package jobscript

var sbatchFlags = []sbatchFlag{
	{long: "account", short: "A", put: ignored(whosePays)},
	{long: "acctg-freq", put: ignored(measured)},
	{long: "array", short: "a", put: becomes("array"), usage: "a job of each index, as in 0-9:2,15; behind % how many " +
		"run at once"},
	{long: "batch", put: refused(eachNode)},
	{long: "bb", put: refused("there are no burst buffers")},
	{long: "bbf", put: refused("there are no burst buffers")},
	{long: "begin", short: "b", put: (*translation).putBegin, usage: "it starts no earlier, as in 16:30, now+2hours or " +
		"2026-11-20T09:00"},
	{long: "chdir", short: "D", put: becomes("dir"), usage: "the folder of the nodes where it begins"},
	{long: "cluster-constraint", put: refused(otherCluster)},
	{long: "clusters", short: "M", put: refused(otherCluster)},
	{long: "comment", put: ignored("a job has a name, and no comment")},
	{long: "constraint", short: "C", put: (*translation).putConstraint, usage: "labels that its nodes must have, joined " +
		"by &"},
	{long: "container", put: refused("write --image IMAGE in a line #FW, with the name of an image")},
	{long: "contiguous", bare: true, put: ignored(nearby)},
	{long: "core-spec", short: "S", put: ignored(onlyGPUs)},
	{long: "cores-per-socket", put: ignored(onlyGPUs)},
	{long: "cpu-freq", put: ignored(clocks)},
	{long: "cpus-per-gpu", put: ignored(onlyGPUs)},
	{long: "cpus-per-task", short: "c", put: (*translation).putCPUs, usage: "sets SLURM_CPUS_PER_TASK, and reserves none"},
	{long: "deadline", put: refused("a job has --max-runtime, and no time by which it has to be over")},
	{long: "delay-boot", put: ignored("a node boots when that lets the job start first")},
	{long: "dependency", short: "d", put: (*translation).putDependency, usage: "jobs that must have come far enough, as " +
		"in afterok:JOB:JOB,singleton"},
	{long: "distribution", short: "m", put: ignored("the tasks of srun are numbered node by node")},
	{long: "error", short: "e", usage: "with --wait, the file of here for its standard error, as --output",
		put: submits(func(s *Submission, v string) { s.Error = v }, ignored(whereOutput))},
	{long: "exclude", short: "x", put: (*translation).putExcluded, usage: "ids of nodes on which it does not run"},
	{long: "exclusive", optional: true, put: (*translation).putExclusive, usage: "all GPUs of each of its nodes"},
	{long: "export", put: (*translation).putExport, usage: "variables, as NAME or NAME=VALUE; ALL passes on nothing"},
	{long: "export-file", put: refused("write --env-file FILE in a line #FW, with a variable a line")},
	{long: "extra-node-info", short: "B", put: ignored(onlyGPUs)},
	{long: "get-user-env", optional: true, put: ignored(ownEnvironment)},
	{long: "gid", put: refused(ownUser)},
	{long: "gpu-bind", put: ignored("a job sees its own GPUs alone, and tasks of --gpus-per-task their own")},
	{long: "gpu-freq", put: ignored(clocks)},
	{long: "gpus", short: "G", put: (*translation).putGPUs, usage: "how many GPUs in all, as 4 or MODEL:4"},
	{long: "gpus-per-node", put: (*translation).putPerNode, usage: "how many on each node"},
	{long: "gpus-per-socket", put: refused("write --gpus-per-node")},
	{long: "gpus-per-task", put: (*translation).putPerTask, usage: "how many for each task of srun"},
	{long: "gres", put: (*translation).putGres, usage: "gpu:N or gpu:MODEL:N, on each node"},
	{long: "gres-flags", put: ignored(onlyGPUs)},
	{long: "hint", put: ignored(onlyGPUs)},
	{long: "hold", short: "H", bare: true, put: means("--hold"), usage: "it waits until forewarm jobs release"},
	{long: "ignore-pbs", bare: true, put: ignored("lines with #PBS are no matter")},
	{long: "input", short: "i", put: refused("write --file FILE in a line #FW, and read that file: the script itself is " +
		"the job's input")},
	{long: "job-name", short: "J", put: becomes("name"), usage: "what to call it (default the script's file name)"},
	{long: "kill-on-invalid-dep", put: ignored("a job fails that waits for what can never come true")},
	{long: "licenses", short: "L", put: refused("an array may say how many of it run at a time, as in --array=0-9%2")},
	{long: "mail-type", put: ignored(noMail)},
	{long: "mail-user", put: ignored(noMail)},
	{long: "mcs-label", put: refused("what is of one organization is kept from others by their keys")},
	{long: "mem", put: (*translation).putMemory, usage: "sets SLURM_MEM_PER_NODE; its memory goes by its GPUs, and it " +
		"is told where that is less"},
	{long: "mem-bind", put: ignored(onlyGPUs)},
	{long: "mem-per-cpu", put: (*translation).putMemoryPerCPU, usage: "sets SLURM_MEM_PER_CPU, as --mem"},
	{long: "mem-per-gpu", put: (*translation).putMemoryPerGPU, usage: "sets SLURM_MEM_PER_GPU, as --mem"},
	{long: "mincpus", put: ignored(onlyGPUs)},
	{long: "network", put: ignored("a job has the network of its nodes")},
	{long: "nice", optional: true, put: ignored(whoGoesFirst)},
	{long: "no-kill", short: "k", optional: true, put: ignored("a job ends with any of its nodes, and is tried again")},
	{long: "no-requeue", bare: true, put: means("--retries-lost=0"), usage: "it is not tried again after the loss of " +
		"its GPUs"},
	{long: "nodefile", short: "F", put: refused(byLabel)},
	{long: "nodelist", short: "w", put: refused(byLabel)},
	{long: "nodes", short: "N", put: (*translation).putNodes, usage: "on how many nodes; the script runs once on each"},
	{long: "ntasks", short: "n", put: (*translation).putTasks, usage: "how many tasks srun starts in all"},
	{long: "ntasks-per-core", put: ignored(onlyGPUs)},
	{long: "ntasks-per-gpu", put: refused("write --ntasks, or --ntasks-per-node")},
	{long: "ntasks-per-node", put: (*translation).putTasksPerNode, usage: "how many tasks srun starts on each node"},
	{long: "ntasks-per-socket", put: ignored(onlyGPUs)},
	{long: "open-mode", usage: "append or truncate the files of --output (default truncate)",
		put: (*translation).putOpenMode},
	{long: "output", short: "o", usage: "with --wait, the file of here for what it writes (default slurm-%j.out); else " +
		"forewarm jobs logs has it",
		put: submits(func(s *Submission, v string) { s.Output = v }, ignored(whereOutput))},
	{long: "overcommit", short: "O", bare: true, put: ignored(onlyGPUs)},
	{long: "oversubscribe", short: "s", bare: true, put: ignored("GPUs are shared where their pool says so")},
	{long: "parsable", optional: true, usage: "print its id alone",
		put: submits(func(s *Submission, _ string) { s.Parsable = true }, ignored(printsID))},
	{long: "partition", short: "p", put: (*translation).putPartition, usage: "its pool"},
	{long: "power", put: ignored(clocks)},
	{long: "prefer", put: (*translation).putPreferred, usage: "labels: nodes with them come first"},
	{long: "priority", put: ignored(whoGoesFirst)},
	{long: "profile", put: ignored(measured)},
	{long: "propagate", optional: true, put: ignored("limits are those of the nodes")},
	{long: "qos", short: "q", put: ignored(whoGoesFirst)},
	{long: "quiet", short: "Q", bare: true, usage: "print nothing but failures",
		put: submits(func(s *Submission, _ string) { s.Quiet = true }, ignored(printsID))},
	{long: "reboot", bare: true, put: refused("nodes are booted when there is need, and not for one job")},
	{long: "requeue", bare: true, put: means("--retries-lost=3"), usage: "it is tried again after the loss of its GPUs, " +
		"three times (the default)"},
	{long: "reservation", put: becomes("reservation"), usage: "it runs in what you reserved, which is one job's"},
	{long: "signal", put: (*translation).putSignal, usage: "a signal before its time is over, as in B:USR1@60"},
	{long: "sockets-per-node", put: ignored(onlyGPUs)},
	{long: "spread-job", bare: true, put: refused("say --nodes")},
	{long: "switches", put: ignored(nearby)},
	{long: "test-only", bare: true, usage: "submit nothing, and say when it would start",
		put: submits(func(s *Submission, _ string) { s.TestOnly = true }, refused("give --dry-run to forewarm run"))},
	{long: "thread-spec", put: ignored(onlyGPUs)},
	{long: "threads-per-core", put: ignored(onlyGPUs)},
	{long: "time", short: "t", put: (*translation).putTime, usage: "how long it may run: M, M:S, H:M:S, D-H or " +
		"D-H:M:S"},
	{long: "time-min", put: refused("a job has one limit, --time: say the shorter one, and it may start earlier")},
	{long: "tmp", put: ignored("nobody counts the disks of nodes")},
	{long: "uid", put: refused(ownUser)},
	{long: "use-min-nodes", bare: true, put: ignored("a job is on as few nodes as it can be")},
	{long: "verbose", short: "v", bare: true, put: ignored(printsID)},
	{long: "wait", short: "W", bare: true, usage: "wait until it is over, write its output to --output, and end with " +
		"its exit code",
		put: submits(func(s *Submission, _ string) { s.Wait = true },
			refused("leave out -d of forewarm run, or use forewarm wait JOB"))},
	{long: "wait-all-nodes", put: ignored("a job starts once all of its nodes are there")},
	{long: "wckey", put: ignored(whosePays)},
	{long: "wrap", usage: "run this line by sh, in place of a script",
		put: submits(func(s *Submission, v string) { s.Wrap = v }, refused("it is for the command line of sbatch"))},
}

const (
	noMail       = "nobody is sent mail: forewarm wait JOB ends when a job does"
	whosePays    = "a job is its organization's, which the key says that submits it (forewarm whoami)"
	whoGoesFirst = "--priority CLASS in a line #FW says who goes first: low, normal or high, or as your site names them"
	printsID     = "forewarm run -d prints the job's id, and nothing else, on its standard output"
	whereOutput  = "output is kept, and forewarm jobs logs JOB shows it"
	// ownEnvironment is what a job gets of its own.
	ownEnvironment = "the environment here is not the job's: --export=NAME=VALUE gives it a variable"
	onlyGPUs       = "GPUs are given out, and the node's processors and memory are shared by those who have them"
	measured       = "the most memory that a job had is measured in any case: forewarm jobs show JOB"
	nearby         = "the nodes of a job are near each other where that can be"
	clocks         = "clocks are the node's affair"
	eachNode       = "a script runs once on each of its nodes"
	otherCluster   = "forewarm --server or --context says which installation is meant"
	ownUser        = "each attempt has a Unix user of its own"
	byLabel        = "write --constraint LABEL in a line #FW: forewarm nodes show NODE has the labels, and --exclude " +
		"keeps a job off a node"
)
