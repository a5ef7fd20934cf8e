package rig

import (
	"errors"
	"os"
	"regexp"
	"time"
)

// What the first start of forewarm up writes for the people's commands.
var (
	serverLine = regexp.MustCompile(`server: (\S+)`)
	keyLine    = regexp.MustCompile(`key: (\S+)`)
)

// AwaitContext waits until forewarm up has written its address and the first key to its
// file of contexts, which it does when it serves. After 30 s that is an error.
func AwaitContext(path string) (server, key string, err error) {
	for range 300 {
		data, err := os.ReadFile(path) //nolint:gosec // the caller's
		at, with := serverLine.FindSubmatch(data), keyLine.FindSubmatch(data)
		if err == nil && at != nil && with != nil {
			return string(at[1]), string(with[1]), nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", "", errors.New("the program did not start within 30 s")
}
