-- +goose Up
-- +goose StatementBegin

-- How many jobs of an array have GPUs is asked before each of their starts.
CREATE INDEX jobs_of_array_with_gpus ON jobs (array_id) WHERE array_id <> '' AND state IN ('scheduled', 'running', 'preempted');
-- +goose StatementEnd
