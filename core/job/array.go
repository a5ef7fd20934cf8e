package job

// Array is what a job shares with the others that one request made.
type Array struct {
	ID          string // empty: the job is in none
	Jobs        int    // how many there are
	First, Last int    // the smallest and the largest index
	Limit       int    // so many have GPUs at once; 0: no bound
}

// Progress counts jobs by how far they have come: those of an array, or one alone.
type Progress struct {
	Jobs      int
	Started   int // at some time, whatever became of them
	Unstarted int // are over, and never started
	Over      int
	Completed int // of those
	WithGPUs  int // an attempt of them goes on
}

// ProgressOf counts one job.
func ProgressOf(j Job) Progress {
	t := Progress{Jobs: 1}
	ok := j.state == Completed
	if ok || !j.StartedAt.IsZero() || j.End.Ran {
		t.Started = 1
	}
	if j.Over() {
		t.Over, t.Unstarted = 1, 1-t.Started
	}
	if ok {
		t.Completed = 1
	}
	if j.HasGPUs() {
		t.WithGPUs = 1
	}
	return t
}

// Add counts other jobs, too.
func (t Progress) Add(o Progress) Progress {
	return Progress{t.Jobs + o.Jobs, t.Started + o.Started, t.Unstarted + o.Unstarted, t.Over + o.Over,
		t.Completed + o.Completed, t.WithGPUs + o.WithGPUs}
}

// Judge says whether the condition is met by all of the jobs: that one did not complete is said of an array once all
// are over. Only final states count: a job that failed and is tried again has not failed. Nothing is met by no job.
func (c Condition) Judge(t Progress) Verdict {
	switch {
	case t.Jobs == 0:
		return Never
	case c == After && t.Started == t.Jobs:
		return Met
	case c == After && t.Unstarted > 0, c == AfterOK && t.Over > t.Completed:
		return Never
	case t.Over < t.Jobs:
		return Wait
	case c == AfterAny, c == AfterOK, c == AfterNotOK && t.Over > t.Completed:
		return Met
	}
	return Never
}
