package main

import "time"

// Of each day the clusters live through what lies around its work: these parts of it
// are counted in boots, the first for what is warmed ahead, the last for nodes that
// go cold.
const (
	leadBoots = 3
	tailBoots = 3.25
)

// usualBoot is how long the boot of a GPU node takes in the accelerated week.
const usualBoot = 5 * time.Minute

// timeline says what time it is in the accelerated week. Within a day its clock runs
// so fast that a boot of the private clusters is one of five minutes. What comes after
// the part of a day that is lived through is left out: the clock steps to a little
// before the opening of the next.
type timeline struct {
	begin  time.Time     // of the run, by the machine's clock
	monday time.Time     // of the accelerated week
	day    time.Duration // that the clusters live through of each day, by the machine's clock
	boot   time.Duration // by the machine's clock
}

// speed is how many seconds of the week one second takes.
func (t timeline) speed() float64 { return float64(usualBoot) / float64(t.boot) }

func (t timeline) ofWeek(real time.Duration) time.Duration {
	return time.Duration(float64(real) * t.speed()).Truncate(time.Second)
}

func (t timeline) ofMachine(week time.Duration) time.Duration {
	return time.Duration(float64(week) / t.speed())
}

// lead is how long before the opening a day begins, by the machine's clock.
func (t timeline) lead() time.Duration { return time.Duration(leadBoots * float64(t.boot)) }

// busy is within how long after the opening jobs come, in the week's time.
func (t timeline) busy() time.Duration {
	return t.ofWeek(t.day - t.lead() - time.Duration(tailBoots*float64(t.boot)))
}

// dayBegin is when a day begins in the week, of the day that the opening is of.
func (t timeline) dayBegin(day int) time.Time {
	return t.monday.AddDate(0, 0, day).Add(opening - t.ofWeek(t.lead()))
}

// weekAt is the time of the week at a time of the machine's clock. Before the run it
// stands still.
func (t timeline) weekAt(now time.Time) time.Time {
	since := max(0, now.Sub(t.begin))
	day := int(since / t.day)
	return t.dayBegin(day).Add(t.ofWeek(since - time.Duration(day)*t.day))
}

// machineAt is when it is that time of the week. What lies in the night is
// counted on from the day before, as if that went on.
func (t timeline) machineAt(at time.Time) time.Time {
	day := int(at.Sub(t.dayBegin(0)) / (24 * time.Hour))
	return t.begin.Add(time.Duration(day)*t.day + t.ofMachine(at.Sub(t.dayBegin(day))))
}

// Now is the time of the week: a timeline is the clock of what lives in it.
func (t timeline) Now() time.Time { return t.weekAt(time.Now()) }
