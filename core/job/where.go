package job

import "slices"

// Where is on which nodes a job may run.
type Where struct {
	Constraints []string `json:"constraints,omitempty"` // labels that a node has to have: key=value, or a key
	Prefers     []string `json:"prefers,omitempty"`     // nodes with more of these labels come first
	Tolerates   []string `json:"tolerates,omitempty"`   // taints that do not keep it away
	Excludes    []string `json:"excludes,omitempty"`    // ids of nodes on which it does not run
	Near        []string `json:"near,omitempty"`        // ids of jobs and arrays: nodes at or near theirs come first
	Apart       []string `json:"apart,omitempty"`       // ids or names of jobs, or ids of arrays: not on a node with these
	Pools       []string `json:"pools,omitempty"`       // ids of those in which it may wait; none: in its own alone
}

// IsCalled reports whether others may mean the job by this: its id, its array's or its name.
func (j Job) IsCalled(name string) bool {
	return name != "" && (name == j.ID || name == j.Array.ID || name == j.Name)
}

// StaysApart reports whether one of two jobs is not to be on a node with the other, because it says so.
func (j Job) StaysApart(o Job) bool {
	return j.OrganizationID == o.OrganizationID && j.ID != o.ID &&
		(slices.ContainsFunc(j.Where.Apart, o.IsCalled) || slices.ContainsFunc(o.Where.Apart, j.IsCalled))
}

// mostAvoided bounds how many nodes a job avoids: the last ones count.
const mostAvoided = 16

// Avoid returns the job once it is kept off nodes, because their hardware ended an attempt of it.
func (j Job) Avoid(nodes ...string) Job {
	all := slices.Clone(j.Avoids)
	for _, id := range nodes {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	j.Avoids = all[max(0, len(all)-mostAvoided):]
	return j
}

// StaysOff reports whether the job does not run on a node, whatever is said of it.
func (j Job) StaysOff(nodeID string) bool {
	return slices.Contains(j.Where.Excludes, nodeID) || slices.Contains(j.Avoids, nodeID)
}
