package forecast

import "math"

// halfLives of the counts that fade, in seconds.
var halfLives = [6]float64{60, 300, 1800, 7200, 43200, 604800}

// youngLives weigh a running job by its age: it counts half after so many
// seconds.
var youngLives = [3]float64{300, 1800, 7200}

// seenLives fade the record of what came true, in seconds.
var seenLives = [4]float64{1800, 4 * 3600, 86400, 7 * 86400}

// seenKnot is the horizon of that record: a knot, in seconds.
const seenKnot = 600

const (
	burstGap   = 60 // seconds without an arrival that end a burst
	hourOfWeek = 7 * 24
	weekSecs   = 7 * 86400
)

// past is what is kept of one tenant's jobs: counts that fade, the last few
// events, and how often what could come did. It is the whole state of a tenant
// class, and stays below two kilobytes.
type past struct {
	Last   int64 `json:"last"` // everything fades as of this second
	Demand int   `json:"demand"`
	Jobs   int64 `json:"jobs"`
	First  int64 `json:"first"` // second of the first arrival

	Arrived [6]float32 `json:"arrived"` // jobs, fading
	GPUs    [6]float32 `json:"gpus"`    // of arrivals, fading
	Ended   [6]float32 `json:"ended"`   // GPUs of jobs that ended, fading
	Young   [3]float32 `json:"young"`   // GPUs of running jobs, weighted by age
	Size    float32    `json:"size"`    // running mean of a job's GPUs

	Submitted int64 `json:"submitted"` // second of the last arrival
	EndedAt   int64 `json:"ended_at"`
	Gap1      int32 `json:"gap1"` // seconds between the last two arrivals
	Gap2      int32 `json:"gap2"` // and between the two before
	JobGPUs   int32 `json:"job_gpus"`
	EndGPUs   int32 `json:"end_gpus"`
	EndAge    int32 `json:"end_age"` // seconds from its arrival to its end
	Burst     int32 `json:"burst"`   // GPUs that arrived since the last pause
	Before    int32 `json:"before"`  // GPUs of the burst before
	Largest   int32 `json:"largest"` // GPUs of a job

	Steps   lastUsedByLevel    `json:"steps"`
	Big     [bins]int64        `json:"big"`      // second of the last job of so many GPUs
	BigRate [bins][2]float32   `json:"big_rate"` // such jobs, fading: half-lives 30 minutes and 12 hours
	Seen    [bins][4]float32   `json:"seen"`     // share of time after which the level was needed within 10 minutes
	Week    [hourOfWeek]uint16 `json:"week"`     // jobs by hour of the week
	Lasting [20]float32        `json:"lasting"`  // ended jobs by the binary logarithm of their seconds
	Slots   slots              `json:"slots"`    // GPUs that arrived within the last day
	Table   timetable          `json:"timetable"`
}

// fadeTo lets time pass.
func (p *past) fadeTo(now int64) {
	d := float64(now - p.Last)
	if d <= 0 {
		return
	}
	p.Slots.passTo(now, p.Last)
	p.Table.passTo(now)
	for i, h := range halfLives {
		f := float32(exp2(-d / h))
		p.Arrived[i] *= f
		p.GPUs[i] *= f
		p.Ended[i] *= f
	}
	for i, h := range youngLives {
		p.Young[i] *= float32(exp2(-d / h))
	}
	short, long := float32(exp2(-d/1800)), float32(exp2(-d/43200))
	for i := range p.BigRate {
		p.BigRate[i][0] *= short
		p.BigRate[i][1] *= long
	}
	p.Last = now
}

// countArrival counts an arrival.
func (p *past) countArrival(now int64, gpus int) {
	p.fadeTo(now)
	p.Demand += gpus
	g := float32(gpus)
	for i := range halfLives {
		p.Arrived[i]++
		p.GPUs[i] += g
	}
	for i := range p.Young {
		p.Young[i] += g
	}
	if p.Jobs == 0 {
		p.First, p.Size, p.Submitted = now, 1, now
	} else {
		p.Gap2, p.Gap1 = p.Gap1, shortTime(now-p.Submitted)
	}
	if now-p.Submitted > burstGap {
		p.Before, p.Burst = p.Burst, 0
	}
	p.Burst = int32(min(int64(p.Burst)+int64(gpus), math.MaxInt32))
	p.Size += 0.05 * (g - p.Size)
	p.Jobs++
	p.Submitted, p.JobGPUs, p.Largest = now, int32(gpus), max(p.Largest, int32(gpus))
	if hour := &p.Week[now/3600%hourOfWeek]; *hour < math.MaxUint16 {
		*hour++
	}
	p.Slots.add(now, gpus)
	p.Table.add(now, gpus)
	for b := 0; b < bins && firstLevel[b] <= gpus; b++ {
		p.Big[b] = now
		p.BigRate[b][0]++
		p.BigRate[b][1]++
	}
}

// countEnd counts the end of a job that arrived age seconds ago and waited for some of them. Had it not, it would not
// have met the GPUs that arrived since it would have ended.
func (p *past) countEnd(now int64, gpus int, age, waited int64, since int) {
	p.fadeTo(now)
	if level := p.Demand - since; level > 0 {
		p.Steps = p.Steps.leaveLevels(level, now)
	}
	p.Demand = max(0, p.Demand-gpus)
	for i := range p.Ended {
		p.Ended[i] += float32(gpus)
	}
	for i, h := range youngLives {
		p.Young[i] = max(0, p.Young[i]-float32(gpus)*float32(exp2(-float64(age)/h)))
	}
	p.EndedAt, p.EndGPUs, p.EndAge = now, int32(gpus), shortTime(age)
}

// countDuration counts how long a job took.
func (p *past) countDuration(age int64) {
	last := len(p.Lasting) - 1
	for i := range p.Lasting {
		p.Lasting[i] *= 0.99
	}
	p.Lasting[min(last, int(math.Log2(float64(max(1, age)))))]++
}

// shortTime cuts a time at 68 years.
func shortTime(seconds int64) int32 { return int32(min(seconds, math.MaxInt32)) }

// countOutcome counts what came of a look that was followed by the next one after so
// many seconds.
func (p *past) countOutcome(needed *[bins]bool, seconds int64) {
	for i, h := range seenLives {
		f := float32(1 - exp2(-float64(seconds)/h))
		for b := range p.Seen {
			hit := float32(0)
			if needed[b] {
				hit = 1
			}
			p.Seen[b][i] += f * (hit - p.Seen[b][i])
		}
	}
}

// durationQuantile returns the quantile of the seconds from arrival to end of jobs that
// ended lately, drawn evenly over each doubling; 0 if none has ended.
func (p *past) durationQuantile(quantile float64) float64 {
	total := float32(0)
	for _, n := range p.Lasting {
		total += n
	}
	rest := float32(quantile) * total
	for i, n := range p.Lasting {
		if n > 0 && rest <= n {
			return exp2(float64(i) + float64(max(0, rest/n)))
		}
		rest -= n
	}
	return 0
}
