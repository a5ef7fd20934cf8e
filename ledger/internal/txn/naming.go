package txn

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
)

// JobNaming returns the job of a pool, which is locked, that names a reservation and is to run in it, as this
// transaction leaves that; false: none is.
func JobNaming(tx *Tx, poolID, reservationID string) (job.Job, bool, error) {
	naming, err := jobsNaming(tx, poolID)
	if err != nil {
		return job.Job{}, false, err
	}
	wanted := naming[reservationID]
	for _, j := range tx.Change.Jobs {
		if j.Reservation == reservationID {
			wanted = append(wanted[:len(wanted):len(wanted)], j.ID)
		}
	}
	for _, id := range wanted {
		j, err := FindJob(tx, id)
		if err != nil {
			return j, false, err
		}
		if j.Reservation == reservationID && j.Attempt == 0 && !j.Over() {
			return j, true, nil
		}
	}
	return job.Job{}, false, nil
}

// jobsNaming are the ids of a pool's jobs that named reservations before this transaction, by reservation.
func jobsNaming(tx *Tx, poolID string) (map[string][]string, error) {
	if naming, found := tx.jobs.naming[poolID]; found {
		return naming, nil
	}
	live, err := tx.LiveJobs.LiveJobs(tx.Port, poolID)
	if err != nil {
		return nil, fmt.Errorf("reading which jobs name a reservation: %w", err)
	}
	naming := map[string][]string{}
	for _, j := range live {
		if j.Reservation != "" {
			naming[j.Reservation] = append(naming[j.Reservation], j.ID)
		}
	}
	if tx.jobs.naming == nil {
		tx.jobs.naming = map[string]map[string][]string{}
	}
	tx.jobs.naming[poolID] = naming
	return naming, nil
}
