package asynqueue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/forewarm/forewarm/worker/queue"
)

// taskType is the one type of task that asynq sees.
const taskType = "forewarm:attempt"

// wire is a message as Redis holds it. It holds nothing that a reader of Redis
// must not know.
type wire struct {
	TaskID  string `json:"task_id"`
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
	Epoch   int    `json:"epoch"`
}

// taskID makes asynq refuse what it already holds. Without the epoch, an attempt
// whose worker died would be refused for the 90 days that asynq remembers it.
func taskID(m queue.Message) string {
	return fmt.Sprintf("%s:%d:%d", m.TaskID, m.Attempt, m.Epoch)
}

func encodeMessage(m queue.Message) ([]byte, error) {
	if m.TaskID == "" {
		return nil, errors.New("the message has no task id")
	}
	payload, err := json.Marshal(wire(m))
	if err != nil {
		return nil, fmt.Errorf("encoding the message: %w", err)
	}
	return payload, nil
}

// decodeMessage refuses whatever encode did not write: Redis may be shared.
func decodeMessage(payload []byte) (queue.Message, error) {
	var w wire
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return queue.Message{}, fmt.Errorf("decoding the message: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return queue.Message{}, errors.New("decoding the message: data after its end")
	}
	if w.TaskID == "" || w.Attempt < 0 || w.Epoch < 0 {
		return queue.Message{}, errors.New("decoding the message: no task id, or a negative count")
	}
	return queue.Message(w), nil
}
