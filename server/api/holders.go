package api

import (
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
)

// Uses of a pool, as the API names them.
const (
	useReserved = "reserved"
	useObserved = "observed"
)

func encodeUse(observed bool) string {
	if observed {
		return useObserved
	}
	return useReserved
}

func decodeHolders(in []contract.PoolHolder, other string) capacity.Holders {
	h := capacity.Holders{Default: other}
	for _, r := range in {
		h.Rules = append(h.Rules, capacity.HolderRule{Account: r.Account, User: r.User, Namespace: r.Namespace,
			Queue: r.Queue, OrganizationID: r.Organization})
	}
	return h
}

func encodeHolders(h capacity.Holders) []contract.PoolHolder {
	var out []contract.PoolHolder
	for _, r := range h.Rules {
		out = append(out, contract.PoolHolder{Account: r.Account, User: r.User, Namespace: r.Namespace, Queue: r.Queue,
			Organization: r.OrganizationID})
	}
	return out
}
