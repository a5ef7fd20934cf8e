//go:build !linux

package httpx

import "errors"

func askForSockets(uint16) ([]Socket, error) { return nil, errors.ErrUnsupported }
