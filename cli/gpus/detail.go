package gpus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// detailView is a GPU with all that its node's daemon tells of it.
var detailView = output.View[contract.GPU]{Name: gpuView.Name, Columns: slices.Concat(gpuView.Columns,
	[]output.Column[contract.GPU]{
		told("USE", useText), told("MEMORY USED", memorySeen), told("TEMPERATURE", func(s contract.GPUSeen) string {
			return known(s.Temperature, " °C")
		}),
		told("POWER", powerSeen), told("CLOCKS", clocksText), told("THROTTLED", func(s contract.GPUSeen) string {
			return strings.Join(s.Throttle, ", ")
		}),
		told("ECC ERRORS", eccText),
		told("REMAPPED ROWS", func(s contract.GPUSeen) string { return known(s.Remapped, "") }),
		told("XIDS", xidText), told("PCIE", pcieText), told("NVLINK", nvlinkText),
		told("FROM DCGM", func(s contract.GPUSeen) string { return strings.Join(s.FromDCGM, ", ") }),
	})}

// told is a column of what the daemon says; what it does not tell is a dash.
func told(head string, text func(contract.GPUSeen) string) output.Column[contract.GPU] {
	return output.Column[contract.GPU]{Head: head, Cell: func(x contract.GPU) string {
		if x.Seen == nil {
			return "-"
		}
		return format.OrDash(text(*x.Seen))
	}}
}

// known writes a figure with its unit; empty: it is not told.
func known[T int | int64](v *T, unit string) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(int64(*v), 10) + unit
}

// labelled writes a text with a word before it, if there is a text.
func labelled(word, text string) string {
	if text == "" {
		return ""
	}
	return word + " " + text
}

// joined puts commas between those texts that are there.
func joined(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", ")
}

func useText(s contract.GPUSeen) string {
	activity := ""
	if s.SMActivity != nil {
		activity = fmt.Sprintf("%.1f%% of its multiprocessors", *s.SMActivity)
	}
	return joined(known(s.Utilization, "%"), activity)
}

func memorySeen(s contract.GPUSeen) string {
	return joined(known(s.MemoryUsedMiB, " MiB"), labelled("busy", known(s.MemoryBusy, "%")))
}

func powerSeen(s contract.GPUSeen) string {
	watts := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.0f W", *v)
	}
	return joined(watts(s.Power), labelled("at most", watts(s.PowerLimit)))
}

func clocksText(s contract.GPUSeen) string {
	return joined(labelled("sm", known(s.SMClock, " MHz")), labelled("memory", known(s.MemoryClock, " MHz")))
}

func eccText(s contract.GPUSeen) string {
	return joined(labelled("uncorrected", known(s.ECCVolatile, "")), labelled("ever", known(s.ECCAggregate, "")),
		labelled("corrected", known(s.ECCCorrectedVolatile, "")), labelled("ever", known(s.ECCCorrectedAggregate, "")))
}

func xidText(s contract.GPUSeen) string {
	return joined(known(s.XIDCount, ""), labelled("last", known(s.LastXID, "")))
}

func pcieText(s contract.GPUSeen) string {
	generation, width := known(s.PCIeGeneration, ""), labelled("x", known(s.PCIeWidth, ""))
	return joined(labelled("generation", outOf(generation, known(s.PCIeGenerationMax, ""))),
		outOf(width, known(s.PCIeWidthMax, "")), rates(s.PCIeSent, s.PCIeReceived))
}

func nvlinkText(s contract.GPUSeen) string {
	up := outOf(known(s.NVLinksUp, ""), known(s.NVLinks, ""))
	if up != "" {
		up += " up"
	}
	return joined(up, labelled("errors", known(s.NVLinkErrors, "")), rates(s.NVLinkSent, s.NVLinkReceived))
}

// outOf writes a figure with the most that it can be, if that is known.
func outOf(v, most string) string {
	if v == "" || most == "" {
		return v
	}
	return v + " of " + most
}

// rates writes what a link carries.
func rates(sent, received *int64) string {
	rate := func(v *int64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.1f MB/s", float64(*v)/1e6)
	}
	return joined(labelled("sends", rate(sent)), labelled("receives", rate(received)))
}
