package server_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/server"
)

// reaching runs all tests, and fails when something is described that none of
// them has seen. A part of the tests proves nothing, and is not asked.
type reaching struct{ *testing.M }

// Run implements goleak.TestingM.
func (r reaching) Run() int {
	code := r.M.Run()
	if code != 0 || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return code
	}
	missing, err := unseenOutcomes()
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the description has outcomes that no test of this package brings about, by operation and "+
			"status:\n  %s",
			strings.Join(missing, "\n  "))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// unseenOutcomes lists the described outcomes of success that were not reached.
func unseenOutcomes() (missing []string, err error) {
	text, err := server.OpenAPI()
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID        string         `yaml:"operationId"`
			Responses map[string]any `yaml:"responses"`
		} `yaml:"paths"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	for _, item := range doc.Paths {
		for _, op := range item {
			for status := range op.Responses {
				outcome := op.ID + " " + status
				if _, ok := reached.Load(outcome); !ok && status < "300" {
					missing = append(missing, outcome)
				}
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}
