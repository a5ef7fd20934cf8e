package compat

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// changeDGPUQuota sets the split of the one pool that there is: where there are several, each has its own. It is
// refused, as it was documented, if more is in use on a side than that would have.
func changeDGPUQuota(c *Call) (int, any, error) {
	var in struct {
		OnlinePercent *float64 `json:"online_percent"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if in.OnlinePercent == nil || !(*in.OnlinePercent >= 0.001 && *in.OnlinePercent <= 1) {
		return 0, nil, problem.Invalid("online_percent", "must be given, from 0.001 to 1", "")
	}
	pools, _, err := list[contract.Pool](c, "/v1/pools", nil, 0, most, nil)
	if err != nil {
		return 0, nil, err
	}
	if len(pools) != 1 {
		return 0, nil, notOffered(fmt.Sprintf("The split between online and batch work is each pool's own, "+
			"and there are %d.", len(pools)), "Set online_share of a pool: PATCH /v1/pools/{id}", "forewarm pools edit --help")
	}
	share := int(math.Round(1000 * *in.OnlinePercent))
	if err := checkShareInUse(c, pools[0], share); err != nil {
		return 0, nil, err
	}
	err = c.ask(inward.Request{Method: http.MethodPatch, Path: "/v1/pools/" + pools[0].ID, Once: c.Once,
		IfMatch: strconv.Quote(strconv.Itoa(pools[0].Version)), Body: contract.PoolPatch{OnlineShare: &share}}, nil)
	if err != nil {
		return 0, nil, renamed(err, "online_share", "online_percent")
	}
	return readDGPUQuota(c)
}

// checkShareInUse refuses a split of which one side is smaller than what is in use of it.
func checkShareInUse(c *Call, p contract.Pool, share int) error {
	online, batch, err := usedOfSides(c, func(string) bool { return true })
	if err != nil {
		return err
	}
	all := p.MaxNodes * p.GPUsPerNode
	most := onlineGPUs(all, share)
	if online <= most && batch <= all-most {
		return nil
	}
	detail := fmt.Sprintf("%d GPUs are in use online and %d by batch work, and the split would have %d and %d.", online,
		batch, most, all-most)
	return problem.New(contract.CodeStateConflict, detail).Request("Wait for some to end, or choose another split")
}

// onlineGPUs are those of some that are for online work, of which a share is in thousandths.
func onlineGPUs(all, share int) int { return int(math.Round(float64(all*share) / 1000)) }
