package gpu

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// What a child is asked for: to look, or to reset the clocks of the GPUs whose UUIDs follow.
const (
	lookWord   = "look"
	clocksWord = "clocks"
)

// Serve is the child's side: for each line of input it does what that asks for, and writes an answer.
// library is the file to load; empty means the driver's own. It returns when the input
// ends.
func Serve(in io.Reader, out io.Writer, library string) error {
	session := openLibrary(library)
	defer session.close()
	lines := bufio.NewScanner(in)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var a answer
		var err error
		if words := strings.Fields(lines.Text()); len(words) > 0 && words[0] == clocksWord {
			a.Clocks, err = session.resetClocks(words[1:])
		} else {
			var r Reading
			r, err = session.look()
			a.Look, a.Events = r.Look, r.Events
		}
		if err != nil {
			a.Error, a.NoDriver = err.Error(), errors.Is(err, ErrNoDriver)
		}
		if err := encoder.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}
