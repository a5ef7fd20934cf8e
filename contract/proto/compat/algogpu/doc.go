// Package algogpu is generated from gpuscheduler.proto: what clients of go-scheduler say.
package algogpu
