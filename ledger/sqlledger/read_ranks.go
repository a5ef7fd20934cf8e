package sqlledger

import (
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

func (r jobReader) JobRanks(jobID string, attempt int) ([]job.Rank, error) {
	return listRows[rankRow](r.newQuery().Where("job_id = ? AND attempt = ?", jobID, attempt).Order("rank"),
		"reading the ranks of job "+jobID)
}

func (r jobReader) RanksOfAttempts(wanted []ledger.JobAttempt) (map[ledger.JobAttempt][]job.Rank, error) {
	found := make(map[ledger.JobAttempt][]job.Rank, len(wanted))
	for part := range slices.Chunk(wanted, atOnce) {
		jobIDs, attempts, wants := make([]string, len(part)), make([]int, len(part)), map[ledger.JobAttempt]bool{}
		for i, of := range part {
			jobIDs[i], attempts[i], wants[of] = of.JobID, of.Attempt, true
		}
		all, err := listRows[rankRow](r.newQuery().Where("job_id IN ? AND attempt IN ?", jobIDs, attempts).
			Order("job_id, attempt, rank"), "reading the ranks of jobs")
		if err != nil {
			return nil, err
		}
		for _, rank := range all {
			of := ledger.JobAttempt{JobID: rank.JobID, Attempt: rank.Attempt}
			if wants[of] { // not one's job with another one's attempt
				found[of] = append(found[of], rank)
			}
		}
	}
	return found, nil
}

func (r jobReader) RanksOn(nodeID string) ([]job.Rank, error) {
	return listRows[rankRow](r.newQuery().Where("node_id = ?", nodeID).Where("state <> 'ended'").
		Order("job_id, attempt, rank"), "reading the jobs on node "+nodeID)
}

func (r jobReader) WorkOn(nodeID string) (w ledger.NodeWork, err error) {
	var daemons []daemonRow
	var nodes []nodeRow
	var pools []poolRow
	var ranks []rankRow
	doing := "reading the work on node " + nodeID
	err = r.readTogether(
		queryRows(doing, &daemons, "FROM node_daemons WHERE id = ?", nodeID),
		queryRows(doing, &nodes, "FROM nodes WHERE id = ?", nodeID),
		queryRows(doing, &pools, "FROM pools WHERE id = (SELECT pool_id FROM nodes WHERE id = ?)", nodeID),
		queryRows(doing, &ranks, "FROM job_ranks WHERE node_id = ? AND state <> 'ended' ORDER BY job_id, attempt, rank",
			nodeID))
	if err == nil && (len(daemons) == 0 || len(pools) == 0) {
		err = wrapError(doing, ledger.ErrNotFound)
	}
	if err != nil {
		return w, err
	}
	if w.Daemon, err = daemons[0].toValue(); err != nil {
		return w, wrapError(doing, err)
	}
	if w.Node, err = nodes[0].toValue(); err != nil {
		return w, wrapError(doing, err)
	}
	if w.Pool, err = pools[0].toValue(); err == nil {
		w.Ranks, err = rowValues(ranks)
	}
	return w, wrapError(doing, err)
}
