package scheduler

import "time"

// Successors returns who would start now if some of what runs ended, and after them those who would if they ended in
// turn, in the order in which a cycle starts them; most of them at most. As long as nothing else changes, it is whose
// turn is next wherever GPUs become free. What does not run is passed over. It leaves the scheduler in a state that
// never was, of no use any more.
func Successors(s *Scheduler, now time.Time, ends []string, most int) []string {
	s.reserved = newReserved() // who claims has its turn by that, whatever ends
	var next []string
	for len(next) < most && len(ends) > 0 && s.Waiting() > 0 {
		for _, id := range ends[:min(len(ends), most)] {
			s.Finish(id, now)
		}
		ends = nil
		for _, start := range s.Cycle(now).Starts {
			ends = append(ends, start.Job)
		}
		next = append(next, ends...)
	}
	return next[:min(len(next), most)]
}
