package jobs

import (
	"path"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// parseVolumes reads FOLDER, FOLDER:ro, FOLDER:TARGET and FOLDER:TARGET:ro.
func parseVolumes(all []string) (out []contract.JobMount, err error) {
	for _, text := range all {
		m := contract.JobMount{}
		rest, readOnly := strings.CutSuffix(text, ":ro")
		m.ReadOnly = readOnly
		m.Source, m.Target, _ = strings.Cut(strings.TrimSuffix(rest, ":rw"), ":")
		for _, p := range []string{m.Source, m.Target} {
			if p == m.Target && p == "" {
				continue
			}
			if !path.IsAbs(p) || strings.Contains(p, ":") || path.Clean(p) != p {
				return nil, wrongUse("--volume %s: write FOLDER, FOLDER:ro or FOLDER:TARGET:ro, with paths such as /data", text)
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// imageText is the image of a job's container, with the folders that it has of its node.
func imageText(x contract.Job) string {
	text := x.Image
	for i, m := range x.Mounts {
		text += map[bool]string{true: " with ", false: ", "}[i == 0] + m.Source
		if m.Target != "" && m.Target != m.Source {
			text += ":" + m.Target
		}
		if m.ReadOnly {
			text += ":ro"
		}
	}
	return format.OrDash(text)
}
