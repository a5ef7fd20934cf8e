// Command forecast is the benchmark of forecasting.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/forewarm/forewarm/core/backtest"
)

func main() {
	for _, path := range os.Args[1:] {
		t, err := readTrace(path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for _, keep := range []int64{0, 600} {
			at := time.Now()
			o, err := backtest.Run(t, backtest.Options{Boot: 300, KeepAlive: keep})
			fmt.Printf("%s keep %d: %.2f %% %.2f s idle %.3f boot %.3f busy %.0f jobs %d longest %d %v %v\n", path, keep, o.ZeroWaitShare(), o.Mean, o.IdleShare(), o.BootShare(), o.BusyHours, o.Jobs, o.Longest, time.Since(at), err)
		}
	}
}
