package placement

import "math/bits"

// SharedGPUs returns on how many GPUs several jobs may be, and how many jobs are there.
func (c *Cluster) SharedGPUs() (gpus, jobs int) {
	for _, k := range c.kinds {
		for _, n := range k.nodes {
			for _, l := range n.loads {
				gpus += min(l.jobs, 1)
				jobs += l.jobs
			}
		}
	}
	return gpus, jobs
}

// FreeGPUs returns how many GPUs nobody holds, on usable nodes or not.
func (c *Cluster) FreeGPUs() int {
	free := 0
	for _, k := range c.kinds {
		for _, n := range k.nodes {
			free += n.GPUs - bits.OnesCount64(n.busy)
		}
	}
	return free
}
