package report

import "github.com/forewarm/forewarm/contract"

// unlisted is what the control plane takes for being here although the last report did not list it: after a backup was
// restored, what has ended since is among it, and so is an attempt that is to end whose order never arrived.
type unlisted struct {
	holds []string
	jobs  []contract.JobKey
}

// answerUnlisted says in a report what of it is over. It is said once: a server of an earlier version would refuse the
// report, and whoever asks in vain asks again.
func (r *Reporter) answerUnlisted(beat *contract.Heartbeat) {
	asked := r.unlisted
	r.unlisted = unlisted{}
	if r.Holds != nil {
		beat.OverHolds = r.Holds.Over(asked.holds)
	}
	if r.Jobs != nil {
		beat.GoneJobs = r.Jobs.Gone(asked.jobs)
	}
}

// knowsGoneJobs reports whether one of the attempts that were asked for is not here.
func (r *Reporter) knowsGoneJobs() bool {
	return r.Jobs != nil && len(r.unlisted.jobs) > 0 && len(r.Jobs.Gone(r.unlisted.jobs)) > 0
}
