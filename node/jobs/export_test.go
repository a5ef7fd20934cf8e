package jobs

// MemoryOf is what the kernel says in the cgroup of an attempt.
func MemoryOf(dir string) (reason string, killed bool, peak int64) {
	reason, killed = cgroup(dir).killedForMemory()
	return reason, killed, cgroup(dir).peak()
}
