package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/node/dcgm"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/report"
)

// checkRates refuses looks and reports that are too many for the driver and the control plane, or too few for it to
// hold the daemon for there.
func (c config) checkRates() error {
	between := func(key string, d, least, most time.Duration) error {
		if d == 0 || least <= d && d <= most {
			return nil
		}
		return fmt.Errorf("%s: %s: must be %s to %s, or left out: as the control plane says", key, d, least, most)
	}
	if err := errors.Join(between("look_every", c.LookEvery, report.LeastLook, report.MostLook),
		between("report_every", c.ReportEvery, report.LeastReport, report.MostReport)); err != nil {
		return err
	}
	if c.LookEvery > 0 && 0 < c.ReportEvery && c.ReportEvery < c.LookEvery {
		return fmt.Errorf("report_every: %s: must not be less than look_every (%s): a report tells of a look",
			c.ReportEvery, c.LookEvery)
	}
	return nil
}

// checkExporter refuses an exporter that cannot be asked.
func (c config) checkExporter() error {
	switch {
	case c.DCGMExporter == "" && c.DCGMAnywhere:
		return errors.New("dcgm_anywhere: is for a dcgm_exporter, and there is none")
	case c.DCGMExporter == "":
		return nil
	case c.Simulate > 0:
		return errors.New("dcgm_exporter: tells of real GPUs, and simulate has others")
	}
	_, err := dcgm.NewExporter(c.DCGMExporter, c.DCGMAnywhere)
	if err != nil {
		return fmt.Errorf("dcgm_exporter: %w", err)
	}
	return nil
}

// withExporter is a source with what the DCGM exporter tells besides, if there is one.
func (c config) withExporter(source gpu.Source) gpu.Source {
	if c.DCGMExporter == "" {
		return source
	}
	exporter, err := dcgm.NewExporter(c.DCGMExporter, c.DCGMAnywhere)
	if err != nil { // it was checked
		return source
	}
	return dcgm.Source{Source: source, Exporter: exporter}
}
