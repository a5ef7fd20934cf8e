package contract

// PriorityClass is a class of jobs: those of higher ones are served first.
type PriorityClass struct {
	Name           string `json:"name"`
	Default        bool   `json:"default" doc:"That of jobs which name none."`
	Allowed        bool   `json:"allowed" doc:"Whether jobs that this key submits may have it."`
	Preempts       bool   `json:"preempts" doc:"False: nobody is told to leave for its jobs."`
	Preemptible    *bool  `json:"preemptible,omitempty" doc:"Left out: its jobs may be told to leave if they say so."`
	OverdueSeconds int64  `json:"overdue_seconds,omitempty" doc:"After so long a wait a job of it goes first."`
}
