package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/internal/statefile"
)

// loadBudget returns what was spent before; nothing at the first start.
func loadBudget(path string) (llm.BudgetState, error) {
	var s llm.BudgetState
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading the budget: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("reading the budget %s (delete it to start a new day): %w", path, err)
	}
	return s, nil
}

func saveBudget(path string, s llm.BudgetState) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the budget: %w", err)
	}
	return statefile.Replace(path, data)
}

// copyState gives a dry run what was learned, in a folder of its own.
func copyState(from, to string) error {
	for _, name := range []string{stateFile, checkpointFile, saltFile} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the agent's state: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			return fmt.Errorf("copying the agent's state: %w", err)
		}
	}
	return nil
}
