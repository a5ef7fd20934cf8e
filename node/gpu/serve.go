package gpu

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// Serve is the child's side: for each line of input it looks once, and writes an answer.
// library is the file to load; empty means the driver's own. It returns when the input
// ends.
func Serve(in io.Reader, out io.Writer, library string) error {
	session := openLibrary(library)
	defer session.close()
	lines := bufio.NewScanner(in)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var a answer
		r, err := session.look()
		if a.Look, a.Events = r.Look, r.Events; err != nil {
			a.Error, a.NoDriver = err.Error(), errors.Is(err, ErrNoDriver)
		}
		if err := encoder.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}
