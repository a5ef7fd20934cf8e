package contract

// MaxBatch is the most requests one batch may hold.
const MaxBatch = 10_000

// BatchResult is what became of one request of a batch.
type BatchResult struct {
	Index   int    `json:"index" doc:"Place of the request in the batch, from 0."`
	Status  int    `json:"status" doc:"What the request alone would have been answered with."`
	ID      string `json:"id,omitempty" doc:"The reservation's, when there is one."`
	State   string `json:"state,omitempty" enum:"booked,waitlisted"`
	Code    string `json:"code,omitempty" doc:"The problem's code, when there is none."`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty" doc:"JSON pointer into the request, when a value of it can never be right."`
}

// BatchResults answers a batch: one result for each request, in their order.
type BatchResults struct {
	Items    []BatchResult `json:"items" nullable:"false"`
	Accepted int           `json:"accepted" doc:"Booked or waitlisted."`
	Refused  int           `json:"refused"`
}

// JobBatchResult is what became of one submission of a batch.
type JobBatchResult struct {
	Index   int    `json:"index" doc:"Place of the submission in the batch, from 0."`
	Status  int    `json:"status" doc:"What the submission alone would have been answered with."`
	JobID   string `json:"job_id,omitempty" doc:"Of the job, where it is one of no array."`
	ArrayID string `json:"array_id,omitempty" doc:"What all jobs of its array share: GET /v1/jobs?array= lists them."`
	Jobs    int    `json:"jobs,omitempty" doc:"How many jobs it made."`
	State   string `json:"state,omitempty" enum:"pending,held" doc:"Of all of them."`
	Code    string `json:"code,omitempty" doc:"The problem's code, when there is none."`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty" doc:"JSON pointer into the submission, when a value of it can never be right."`
}

// JobBatchResults answers a batch of jobs: one result for each submission, in their order.
type JobBatchResults struct {
	Items    []JobBatchResult `json:"items" nullable:"false"`
	Accepted int              `json:"accepted"`
	Refused  int              `json:"refused"`
}

// JobBatch submits many jobs at once.
type JobBatch struct {
	Items []JobCreate `json:"items" nullable:"false" minItems:"1" maxItems:"10000"`
}
