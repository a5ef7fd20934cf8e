package forecasts

import (
	"fmt"
	"strconv"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var forecastView = output.View[contract.Forecast]{
	Name: func(x contract.Forecast) string { return x.ID },
	Columns: []output.Column[contract.Forecast]{
		{Head: "ID", Cell: func(x contract.Forecast) string { return x.ID }},
		{Head: "SOURCE", Cell: func(x contract.Forecast) string { return x.Source }},
		{Head: "START", Cell: func(x contract.Forecast) string { return format.Time(x.Start) }},
		{Head: "FOR", Right: true,
			Cell: func(x contract.Forecast) string { return format.Duration(x.End.Sub(x.Start)) }},
		{Head: "GPUS P10 P50 P90", Right: true, Cell: expectedGPUs},
		{Head: "CHANCE", Right: true, Cell: func(x contract.Forecast) string { return format.Fixed(&x.Probability) }},
		{Head: "BASELINE", Right: true,
			Cell: func(x contract.Forecast) string { return format.Fixed(x.BaselineProbability) }},
		{Head: "REASON", Cell: func(x contract.Forecast) string { return x.ReasonCode }},
		{Head: "STATE", Cell: func(x contract.Forecast) string { return x.State }},
		{Head: "CAME", Right: true, Cell: outcomeText},
		{Head: "BRIER", Right: true, Cell: func(x contract.Forecast) string {
			return scoreText(x, func(o contract.ForecastOutcome) float64 { return o.Brier })
		}},
		{Head: "PINBALL", Right: true, Cell: func(x contract.Forecast) string {
			return scoreText(x, func(o contract.ForecastOutcome) float64 { return o.Pinball })
		}},
		{Head: "LOG LOSS", Right: true, Wide: true, Cell: func(x contract.Forecast) string {
			return scoreText(x, func(o contract.ForecastOutcome) float64 { return o.LogLoss })
		}},
		{Head: "INFLUENCE", Right: true, Wide: true,
			Cell: func(x contract.Forecast) string { return format.Fixed(x.Influence) }},
		{Head: "POOL", Wide: true, Cell: func(x contract.Forecast) string { return x.PoolID }},
		{Head: "MADE BY", Wide: true, Cell: func(x contract.Forecast) string { return x.MadeBy }},
		{Head: "ISSUED", Wide: true, Cell: func(x contract.Forecast) string { return format.Time(x.IssuedAt) }},
		{Head: "RECORDED", Wide: true, Cell: func(x contract.Forecast) string { return format.Time(x.RecordedAt) }},
		{Head: "MODEL", Wide: true, Cell: func(x contract.Forecast) string { return format.OrDash(x.Model) }},
		{Head: "PROMPT", Wide: true, Cell: func(x contract.Forecast) string { return format.OrDash(x.PromptHash) }},
		{Head: "EVIDENCE", Wide: true, Cell: func(x contract.Forecast) string { return format.OrDash(x.EvidenceHash) }},
	},
}

// expectedGPUs are the three quantiles: 1 4 8 reads as between 1 and 8, about 4.
func expectedGPUs(x contract.Forecast) string {
	return fmt.Sprintf("%d %d %d", x.GPUs.P10, x.GPUs.P50, x.GPUs.P90)
}

func outcomeText(x contract.Forecast) string {
	if x.Outcome == nil {
		return "-"
	}
	return strconv.Itoa(x.Outcome.GPUs)
}

func scoreText(x contract.Forecast, score func(contract.ForecastOutcome) float64) string {
	if x.Outcome == nil {
		return "-"
	}
	s := score(*x.Outcome)
	return format.Fixed(&s)
}
