package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/forewarm/forewarm/internal/statefile"
)

// head is what is noted beside a log of its last entry. By it, a log that was removed or cut at its end is found out,
// which the chain alone does not show. It may be one entry behind: a crash can come between the two.
type head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// headPath is the note of the log at path.
func headPath(path string) string { return path + ".head" }

// readHead returns the note of the log at path; of a log without one, nothing was entered.
func readHead(path string) (head, error) {
	data, err := os.ReadFile(headPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return head{}, nil
	}
	if err != nil {
		return head{}, fmt.Errorf("reading the head of the egress log: %w", err)
	}
	var h head
	if err := json.Unmarshal(data, &h); err != nil || h.Seq < 1 || h.Hash == "" {
		return head{}, &ChainError{Path: headPath(path), Line: 1, Why: "the note of the last entry was changed"}
	}
	return h, nil
}

// writeFile puts the note in the place of the one before.
func (h head) writeFile(path string) error {
	return statefile.Write(headPath(path), h)
}
