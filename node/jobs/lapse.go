package jobs

import "github.com/forewarm/forewarm/contract"

// whyLost is why an attempt is lost whose hold the node has ended by itself.
const whyLost = "its node ended it, as its lease was over and the control plane could not be reached"

// noteLapses notes which holds of attempts the node has ended by itself. A hold is forgotten no sooner than after a
// report that tells its end, so that each report has this noted. The keeper is locked.
func (k *Keeper) noteLapses() {
	if k.Holds == nil {
		return
	}
	for _, id := range k.Holds.Lapsed() {
		for _, a := range k.attempts {
			a.lapsed = a.lapsed || a.place == id
		}
	}
}

// isLostToLease reports whether an attempt ended like this because the node ended its hold by itself: then it is no
// matter what the program made of it. What was over when this keeper began ended as it is written down.
func (k *Keeper) isLostToLease(a *attempt, r result) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noteLapses()
	return a.lapsed && a.ran && (r.Code == "" || r.Code == contract.JobNotStarted)
}
