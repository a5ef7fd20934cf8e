package main

import (
	"testing"

	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }
