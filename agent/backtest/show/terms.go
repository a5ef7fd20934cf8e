package show

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/agent/backtest"
)

// term is what a number or a name means.
type term struct{ Name, Means string }

// listTerms are the definitions of everything in a report.
func listTerms(r backtest.Report) []term {
	boot := (time.Duration(r.Settings.BootSeconds) * time.Second).String()
	return []term{
		{"replay", "Your jobs are replayed second by second with as many GPUs as are wanted. A job that finds its " +
			"GPUs warm starts at once; " +
			"one that does not waits until they have booted, which takes " + boot +
			". Each group of the history has GPUs of its own."},
		{"zero-wait", "Jobs that found their GPUs warm. Of what really happened: jobs that started within a minute."},
		{"mean wait, p95 wait",
			"Time from submission to start, over the jobs that count; 95 of 100 waited no longer than the p95."},
		{"hours saved", "Waiting of all jobs together that nothing kept would have cost and this policy does not."},
		{"idle waste", "GPU-hours paid for in which a GPU idled or booted."},
		{"overhead", "Idle waste per 100 GPU-hours that jobs used."},
		{"cost", "Idle waste, and waiting at its worth. " + explainWorth(r) +
			" This is what the recommendation compares."},
		{"what happened",
			"Real waits, where the history says when jobs started. They include waiting for anything, such as a " +
				"quota or a full " +
				"cluster, so they cannot be compared with the replays."},
		{"reactive", "A GPU boots when a job asks for it and is given back when the job ends."},
		{"fixed 09–18 schedule",
			"GPUs are kept on weekdays from 9 to 18, as many as were enough for nine tenths of these hours during " +
				"the warm-up."},
		{"keep-alive", "A GPU is kept for a time after its job. The time was chosen in hindsight, at the lowest " +
			"cost, from 1 minute to 4 days."},
		{"last week, same hour",
			"As many GPUs are kept as were wanted at the same time last week, a quarter of an hour before and after " +
				"included."},
		{"forewarm, statistics",
			"GPUs are kept where the chance that they are wanted is worth their idling, from the jobs so far alone: no " +
				"logs, no language model."},
		{"perfect foresight",
			"What could be had at best by somebody who knows all jobs in advance: nobody waits, and each GPU idles or " +
				"boots anew, whichever costs less."},
		{"break-even", "The extra idle waste of Forewarm over the best simpler rule, for each hour of waiting that " +
			"it saves. Both are taken as they ran at your price."},
		{"said and seen",
			"Of the times when Forewarm said that jobs would come with some chance, how often they came. On the line, " +
				"it may be taken at its word."},
	}
}

// explainWorth says what waiting costs.
func explainWorth(r backtest.Report) string {
	text := fmt.Sprintf("An hour of one waiting job counts as %s idle GPU-hours", formatNumber(&r.Settings.WaitWorth))
	if r.Settings.WaitPrice != nil {
		text += fmt.Sprintf(", which is %s at %s for a GPU-hour", formatMoney(r.Settings.WaitPrice),
			formatMoney(r.Settings.GPUPrice))
	}
	return text + "."
}

// listNotes are the definitions that the table cannot do without.
func listNotes(r backtest.Report) []string {
	lines := []string{"Hours saved: against nothing kept. Cost: idle waste, and waiting at its worth. " +
		explainWorth(r)}
	for _, p := range r.Policies {
		if p.Policy == backtest.Happened && p.Mean != nil {
			lines = append(lines,
				"What happened includes waiting for anything, such as a full cluster; the other rows wait for boots "+
					"alone. Its zero-wait counts the jobs that started within a minute.")
		}
	}
	return lines
}
