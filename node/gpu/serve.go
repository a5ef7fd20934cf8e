package gpu

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// What a child is asked for: to look, to reset the clocks of the GPUs whose UUIDs follow, to read how all GPUs are
// set, or to set some as follows.
const (
	lookWord     = "look"
	pcieWord     = "pcie" // after look: the throughput of PCIe, too
	clocksWord   = "clocks"
	settingsWord = "settings"
	restoreWord  = "restore"
)

// Serve is the child's side: for each line of input it does what that asks for, and writes an answer.
// library is the file to load; empty means the driver's own. It returns when the input
// ends.
func Serve(in io.Reader, out io.Writer, library string) error {
	session := openLibrary(library)
	defer session.close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostLine)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if err := encoder.Encode(session.answer(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// answer does what a line asks for.
func (s *session) answer(line string) (a answer) {
	var err error
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case clocksWord:
		a.Clocks, err = s.resetClocks(strings.Fields(rest))
	case settingsWord:
		a.Settings, err = s.readSettings()
	case restoreWord:
		var wanted settingsOf
		if err = json.Unmarshal([]byte(rest), &wanted); err == nil {
			a.Restored, err = s.restore(wanted)
		}
	default:
		var r Reading
		r, err = s.look(rest == pcieWord)
		a.Look, a.Events, a.HearsXIDs = r.Look, r.Events, r.HearsXIDs
	}
	if err != nil {
		a.Error, a.NoDriver = err.Error(), errors.Is(err, ErrNoDriver)
	}
	return a
}
