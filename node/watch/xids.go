package watch

import (
	"slices"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/gpu"
)

// count remembers the XIDs that came.
func (w *Watcher) count(came map[string][]contract.XID) {
	for uuid, all := range came {
		n := w.memory.XIDs[uuid]
		for _, x := range all {
			n.Count, n.Last = n.Count+int64(x.Count), x.Code
		}
		w.memory.XIDs[uuid] = n
	}
}

// tellXIDs adds to a GPU those of this boot. Where nothing tells of them, none is not 0, and what a DCGM exporter
// said of the last one stays.
func (w *Watcher) tellXIDs(g *contract.LookGPU, tells bool) {
	n := w.memory.XIDs[chipOf(*g)]
	if n.Count == 0 {
		if tells {
			g.XIDCount = new(int64)
		}
		return
	}
	g.XIDCount, g.LastXID = &n.Count, gpu.Of(n.Last)
	g.FromDCGM = slices.DeleteFunc(slices.Clone(g.FromDCGM), func(field string) bool { return field == lastXID })
}

// lastXID is what a look calls the last XID.
const lastXID = "last_xid"
