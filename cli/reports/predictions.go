package reports

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// prediction is how the predictions of one kind came out in a pool.
type prediction struct {
	pool, of string
	contract.TimeCalibration
}

var predictionView = output.View[prediction]{
	Name: func(x prediction) string { return x.pool + " " + x.of },
	Columns: []output.Column[prediction]{
		{Head: "POOL", Cell: func(x prediction) string { return x.pool }},
		{Head: "PREDICTED", Cell: func(x prediction) string { return x.of }},
		{Head: "N", Right: true, Cell: func(x prediction) string { return strconv.Itoa(x.Interval.N) }},
		{Head: "INTERVAL", Cell: func(x prediction) string {
			return fmt.Sprintf("%.2f said, %.2f seen", x.Interval.Said, x.Interval.Seen)
		}},
		{Head: "MEAN ERROR", Right: true, Cell: func(x prediction) string { return secondsText(x.MeanAbsoluteError) }},
		{Head: "PINBALL", Right: true, Cell: func(x prediction) string { return secondsText(x.MeanPinball) }},
		{Head: "MEAN TIME", Right: true, Cell: func(x prediction) string { return secondsText(x.MeanMeasuredLength) }},
	},
}

func secondsText(s float64) string {
	return format.Duration(time.Duration(s * float64(time.Second)).Round(time.Second))
}

// predictionsOf are the rows of the pools, starts before runtimes.
func predictionsOf(all []contract.JobCalibration) (out []prediction) {
	for _, j := range all {
		pool := cmp.Or(j.PoolName, j.PoolID)
		if j.Starts != nil {
			out = append(out, prediction{pool, "start", *j.Starts})
		}
		if j.Runtimes != nil {
			out = append(out, prediction{pool, "runtime", *j.Runtimes})
		}
	}
	return out
}
