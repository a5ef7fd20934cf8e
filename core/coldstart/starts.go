package coldstart

import "slices"

// Warmth is how a GPU job found its nodes.
type Warmth int

// Untold is a start whose nodes the history does not cover for long enough.
const (
	Warm    Warmth = iota // every node had power when it was wanted
	Cold                  // it waited for a node to boot, alone or beside others
	Untold                //
	Refuted               // its nodes should have been down, but it started at once
)

// Cause is what a job waited for besides a boot.
type Cause int

// The causes of a wait, as far as the history tells. Priority is also what
// remains when nothing else explains a wait.
const (
	None      Cause = iota
	Limits          // the cluster said so
	Resources       // others used the nodes that it then got
	Priority        // priority, backfill, or something else
	Early           // it may have been a boot: the history does not cover the nodes for long enough
)

// start is what is known of one GPU start.
type start struct {
	job     int
	warmth  Warmth
	wait    int64 // since it was ready
	boot    int64 // seconds of it that it waited for a boot
	cause   Cause // of the rest
	began   bool  // the boot was begun for it, and not for one before it
	blocked bool  // it was not eligible when it was submitted
}

func (s start) rest() int64 { return s.wait - s.boot }

// history is the jobs with what is inferred of them.
type history struct {
	jobs   []Job
	assume Assumptions
	period Period
	nodes  occupancy // by all jobs
	starts []start   // of GPU jobs that are not our own, in the order of their starts
	open   []int     // jobs of which the start is not settled: see mayBoot
	boot   Boot
}

// Basis says where the length of a boot comes from.
type Basis string

// The bases of a Boot.
const (
	Given    Basis = "given"
	Measured Basis = "measured" // the median of the waits that were nothing but a boot
	AtMost   Basis = "at most"  // none was seen: the limit
)

// Boot is how long a job waits for one, in seconds.
type Boot struct {
	Seconds int64
	Basis   Basis
	Seen    int // waits that were nothing but a boot
}

func inferStarts(jobs []Job, a Assumptions, p Period) *history {
	h := &history{jobs: sortJobs(jobs), assume: a, period: p}
	h.nodes = occupy(h.jobs, p, func(Job) bool { return true })
	for _, name := range h.nodes.nodes() {
		for _, u := range h.nodes[name] {
			h.judgeUse(u)
		}
	}
	for i, j := range h.jobs {
		switch {
		case j.GPUs == 0 || j.Own:
		case h.mayBoot(j):
			h.open = append(h.open, i)
		default:
			h.starts = append(h.starts, h.judgeStart(i))
		}
	}
	h.measureBoot()
	for i := range h.starts {
		h.explainWait(&h.starts[i])
	}
	return h
}

// judgeUse decides whether a use began with a boot: the node had been unused for
// longer than its suspend time when the first of the jobs wanted it. A job that
// waited longer than a boot may take wanted the node later than it was ready.
func (h *history) judgeUse(u *use) {
	for _, i := range u.jobs {
		if j := h.jobs[i]; j.Start == u.start {
			u.asked = min(u.asked, max(j.Ready, j.Start-h.assume.BootLimit))
		}
	}
	suspend := h.assume.suspendTime(u.node)
	u.cold = suspend != Never && u.asked-u.idleSince > suspend && u.start-u.asked > prompt
}

// isDark reports whether the history cannot tell if the node had power.
func (h *history) isDark(u *use) bool {
	suspend := h.assume.suspendTime(u.node)
	return !u.known && suspend != Never && u.asked-u.idleSince <= suspend
}

// shouldBeDown reports whether the use began at once on a node without power.
func (h *history) shouldBeDown(u *use) bool {
	suspend := h.assume.suspendTime(u.node)
	return suspend != Never && u.asked-u.idleSince > suspend && !u.cold
}

// mayBoot reports whether a job's start may be none yet. Of a job whose nodes still boot
// a history tells a start already, that of its allocation, and moves it to the end of the boot
// when that has come. So a job that runs is not settled while a boot may take, if one of
// its nodes was not in use before.
func (h *history) mayBoot(j Job) bool {
	return j.End == 0 && slices.ContainsFunc(j.Nodes, func(node string) bool {
		u, suspend := h.nodes.find(node, j.Start), h.assume.suspendTime(node)
		down := suspend != Never && (u.asked-u.idleSince > suspend || h.isDark(u))
		return down && h.period.Until-u.start < h.assume.BootLimit
	})
}

// judgeStart says how a GPU job found its nodes, and how long it waited for a
// boot: from when it was wanted on the node that booted until the node was up.
func (h *history) judgeStart(i int) start {
	j := h.jobs[i]
	s := start{job: i, wait: j.Start - j.Ready, began: true, blocked: j.Hold == Dependency || j.Ready-j.Submit > prompt}
	for _, node := range j.Nodes {
		u := h.nodes.find(node, j.Start)
		switch {
		case j.Start-u.start > prompt: // it came to a node in use
		case u.cold:
			s.boot = max(s.boot, u.start-max(j.Ready, u.asked))
			s.began = s.began && u.asked == j.Ready
		case h.isDark(u):
			s.warmth = max(s.warmth, Untold)
		case u.start == j.Start && h.shouldBeDown(u):
			s.warmth = max(s.warmth, Refuted)
		}
	}
	if s.boot = max(0, s.boot); s.boot > prompt {
		s.warmth = Cold
	} else {
		s.boot = 0
	}
	return s
}

// measureBoot finds how long a boot takes, and cuts what a job waited for one
// down to that where it waited for other things as well.
func (h *history) measureBoot() {
	var pure []int64
	for _, s := range h.starts {
		if h.isPure(s) {
			pure = append(pure, s.boot)
		}
	}
	h.boot = Boot{Seconds: h.assume.BootLimit, Basis: AtMost, Seen: len(pure)}
	if len(pure) > 0 {
		slices.Sort(pure)
		h.boot.Seconds, h.boot.Basis = rank(pure, 50), Measured
	}
	if h.assume.Boot > 0 {
		h.boot.Seconds, h.boot.Basis = h.assume.Boot, Given
	}
	for i := range h.starts {
		if s := &h.starts[i]; s.warmth == Cold && !h.isPure(*s) {
			s.boot = min(s.boot, h.boot.Seconds)
		}
	}
}

// isPure reports whether a job waited for a boot and nothing else: it took no
// longer than a boot may, the cluster named no other reason, and it began the
// boot itself.
func (h *history) isPure(s start) bool {
	return s.warmth == Cold && s.began && s.boot == s.wait && s.wait <= h.assume.BootLimit && h.jobs[s.job].Hold != Limit
}

// explainWait says what a job waited for besides a boot.
func (h *history) explainWait(s *start) {
	j := h.jobs[s.job]
	switch {
	case s.rest() <= prompt:
	case j.Hold == Limit:
		s.cause = Limits
	case h.nodesWereUsed(j):
		s.cause = Resources
	case s.warmth == Untold:
		s.cause = Early
	default:
		s.cause = Priority
	}
}

// nodesWereUsed reports whether others ran, while the job waited, on a node that
// it then got.
func (h *history) nodesWereUsed(j Job) bool {
	return slices.ContainsFunc(j.Nodes, func(node string) bool {
		u := h.nodes.find(node, j.Start)
		return u.start < j.Start && j.Start-u.start > prompt || u.known && u.idleSince > j.Ready
	})
}

// rank returns the value at rank ceil(percent n / 100) of sorted values.
func rank(sorted []int64, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(1, (percent*len(sorted)+99)/100)-1]
}
