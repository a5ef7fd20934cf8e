//go:build !(linux && cgo)

package gpu

import "fmt"

// HasNVML says whether this program can ask NVIDIA's library.
const HasNVML = false

type session struct{}

func openLibrary(string) *session { return &session{} }

func (*session) look(bool) (Reading, error) {
	return Reading{}, fmt.Errorf("%w: this program was built without NVML", ErrNoDriver)
}

func (s *session) resetClocks([]string) ([]ClockReset, error) {
	_, err := s.look(false)
	return nil, err
}

func (s *session) readSettings() (settingsOf, error) {
	_, err := s.look(false)
	return nil, err
}

func (s *session) restore(settingsOf) ([]Restored, error) {
	_, err := s.look(false)
	return nil, err
}

func (*session) close() {}
