package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/burnin"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/hold"
)

// The commands as which this program starts itself again, to use NVIDIA's libraries.
const (
	nvmlArgument = "nvml-child"
	gpuArgument  = "gpu-child"
)

// newGPUChildCommand is the process in which the memory of one GPU is tested or overwritten.
func newGPUChildCommand(at clock.Clock) *cobra.Command {
	var library string
	c := &cobra.Command{
		Use: gpuArgument, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return burnin.Serve(cmd.InOrStdin(), cmd.OutOrStdout(), library, at)
		},
	}
	c.Flags().StringVar(&library, "library", "", "the library to load instead of the CUDA driver's own")
	return c
}

// prober is what works on the memory of GPUs here.
func (c config) prober() burnin.Prober {
	if c.Simulate > 0 {
		return burnin.Simulated{}
	}
	return &burnin.Children{Command: []string{launcher[0], gpuArgument}}
}

// cleaner cleans GPUs after each holder, and sets them as is remembered; nil: nothing is to be done there.
func (c config) cleaner(p burnin.Prober, settings *gpu.Settings) hold.GPUCleaner {
	mode := burnin.Mode(c.Overwrite)
	if mode == burnin.Never && c.Clocks == keepClocks && settings == nil {
		return nil
	}
	all := burnin.Cleaner{Prober: p, Mode: mode}
	if c.Clocks == resetClocks && c.Simulate == 0 {
		all.Clocks = gpu.Clocks{Command: []string{launcher[0], nvmlArgument}}
	}
	if settings != nil {
		all.Settings = settings
	}
	return all
}

// settings remembers how GPUs are set; nil: they stay as holders set them.
func (c config) settings(bootID string) *gpu.Settings {
	if c.Settings == keepSettings || c.Simulate > 0 || !gpu.HasNVML || c.Source == sourceSMI {
		return nil
	}
	return &gpu.Settings{Command: []string{launcher[0], nvmlArgument}, BootID: bootID,
		File: filepath.Join(c.StateDir, "settings.json")}
}
