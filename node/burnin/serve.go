package burnin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/forewarm/forewarm/internal/clock"
)

// library is the CUDA driver's.
const library = "libcuda.so.1"

// errNoCUDA says that the GPU could not be reached by CUDA, for which it need not be to blame: the library is not
// there, this process may not use it, or others have the GPU.
var errNoCUDA = errors.New("no CUDA")

// Serve is the child's side: it reads what to do, does it, and writes what came of it. path is the library to load;
// empty means the driver's own.
func Serve(in io.Reader, out io.Writer, path string, c clock.Clock) error {
	var what request
	if err := json.NewDecoder(in).Decode(&what); err != nil {
		return fmt.Errorf("reading what to do: %w", err)
	}
	if path == "" {
		path = library
	}
	return json.NewEncoder(out).Encode(work(what, path, c))
}

func work(what request, path string, c clock.Clock) Result {
	d, err := openDevice(path)
	switch {
	case errors.Is(err, errNoCUDA):
		return Result{State: Skipped, Detail: err.Error()}
	case err != nil:
		return Result{State: Failed, Detail: err.Error()}
	}
	if strings.HasPrefix(what.UUID, "GPU-") && d.uuid() != "" && d.uuid() != what.UUID {
		return Result{State: Failed, Detail: "the driver opens " + d.uuid() + " in its place"}
	}
	m := &memory{device: d, clock: c}
	if what.Overwrite {
		return m.run(toOverwrite)
	}
	return m.run(toTest)
}
