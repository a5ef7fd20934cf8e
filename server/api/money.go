package api

import (
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/server/problem"
)

// money renders an amount with two to six decimal places.
func money(m gpu.MicroUSD) contract.Money { return problem.Money(m) }

// micro reads an amount whose form was checked by its pattern.
func micro(m contract.Money) gpu.MicroUSD {
	whole, fraction, _ := strings.Cut(m.Amount, ".")
	n, _ := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	return gpu.MicroUSD(n)
}
