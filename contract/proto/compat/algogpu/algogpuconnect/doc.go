// Package algogpuconnect is generated from gpuscheduler.proto: both sides of GPUScheduler over
// HTTP.
package algogpuconnect
