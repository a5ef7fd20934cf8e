package audit

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What visitors of nodes write down.
const (
	begins  = "begins"  // a command has begun
	works   = "works"   // and is there
	lingers = "lingers" // what it left in the background is there
	ends    = "ends"
	leaves  = "leaves" // a mark
	sees    = "sees"   // a mark of its own allocation
	finds   = "finds"  // a mark of another allocation
)

// Use is a line that the command of a holder wrote down on a node.
type Use struct {
	At                        time.Time
	What                      string
	Visit, Allocation, Tenant string
	GPUs                      []string // UUIDs
	Mark                      string   // that was left, seen or found: its kind, a colon, and its name
}

// ParseUses reads what visitors wrote down. Each line is whole: the kernel appends it at once.
func ParseUses(r io.Reader) ([]Use, error) {
	var all []Use
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) != 7 || !slices.Contains([]string{begins, works, lingers, ends, leaves, sees, finds}, f[1]) {
			return nil, fmt.Errorf("line %d of the visitors is none of theirs: %q", n, lines.Text())
		}
		seconds, micros, ok := strings.Cut(f[0], ".")
		whole, err := strconv.ParseInt(seconds, 10, 64)
		part, perr := strconv.ParseInt(micros, 10, 64)
		if !ok || err != nil || perr != nil || len(micros) != 6 {
			return nil, fmt.Errorf("line %d of the visitors: %q is no time", n, f[0])
		}
		all = append(all, Use{At: time.UnixMicro(whole*1e6 + part).UTC(), What: f[1], Visit: f[2], Allocation: f[3],
			Tenant: f[4], GPUs: strings.Split(f[5], ","), Mark: f[6]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading what visitors wrote down: %w", err)
	}
	return all, nil
}

// Hands is what visitors say of GPUs that went from hand to hand.
type Hands struct {
	Sessions  int // commands that began
	Shared    int // allocations that began while another had the GPU, too
	HandOvers int // from one allocation to the next one of the same GPU, of another tenant
	Marks     int // that were left
	TwoHands  []string
	Uncleaned []string
	// Blind says why what was not found does not count: nothing was handed over, or a kind of mark was left that not
	// even those who left it saw.
	Blind []string
}

// ReadHands judges what visitors wrote down. Nothing of it is the product's own word.
func ReadHands(uses []Use, s Sharing) Hands {
	h := Hands{Uncleaned: uncleanedIn(uses, s), Blind: blindIn(uses)}
	for _, u := range uses {
		switch u.What {
		case begins:
			h.Sessions++
		case leaves:
			h.Marks++
		}
	}
	for gpu, holders := range holdersOf(uses) {
		h.HandOvers += countHandOvers(holders)
		h.Shared += countShared(holders)
		h.TwoHands = append(h.TwoHands, overlapsOf(gpu, holders, max(s.PerGPU[gpu], 1))...)
	}
	slices.Sort(h.TwoHands)
	if h.Sessions == 0 || h.HandOvers == 0 {
		h.Blind = append(h.Blind, fmt.Sprintf("%d commands ran on nodes and %d GPUs were handed over: nothing was measured",
			h.Sessions, h.HandOvers))
	}
	return h
}

// holder is when work of an allocation was seen on a GPU.
type holder struct {
	allocation, tenant string
	first, last        time.Time
}

// holdersOf are the holders of each GPU, in the order in which they came.
func holdersOf(uses []Use) map[string][]holder {
	all := map[string][]holder{}
	for _, u := range uses {
		for _, gpu := range u.GPUs {
			i := slices.IndexFunc(all[gpu], func(h holder) bool { return h.allocation == u.Allocation })
			if i < 0 {
				all[gpu] = append(all[gpu], holder{u.Allocation, u.Tenant, u.At, u.At})
				continue
			}
			h := &all[gpu][i]
			if u.At.Before(h.first) {
				h.first = u.At
			}
			if u.At.After(h.last) {
				h.last = u.At
			}
		}
	}
	for _, holders := range all {
		slices.SortFunc(holders, func(a, b holder) int { return a.first.Compare(b.first) })
	}
	return all
}

func countHandOvers(holders []holder) (n int) {
	for i := range holders {
		if i > 0 && holders[i].tenant != holders[i-1].tenant {
			n++
		}
	}
	return n
}

// countShared counts holders who came while another one was there.
func countShared(holders []holder) (n int) {
	for i, next := range holders {
		if slices.ContainsFunc(holders[:i], func(one holder) bool { return !next.first.After(one.last) }) {
			n++
		}
	}
	return n
}

// overlapsOf are holders whose work was seen on a GPU while that of as many as may have it was, or after it.
func overlapsOf(gpu string, holders []holder, may int) (found []string) {
	for i, next := range holders {
		there := slices.DeleteFunc(slices.Clone(holders[:i]), func(one holder) bool { return next.first.After(one.last) })
		if len(there) >= may {
			for _, one := range there {
				found = append(found, fmt.Sprintf("GPU %s: work of %s (%s) was there until %s, and that of %s (%s) from %s on",
					gpu, one.allocation, one.tenant, one.last.Format(stamp), next.allocation, next.tenant,
					next.first.Format(stamp)))
			}
		}
	}
	return found
}

// uncleanedIn are the allocations whose commands found marks of others, with the first marks.
func uncleanedIn(uses []Use, s Sharing) (all []string) {
	marks := map[string][]string{}
	for _, u := range uses {
		if u.What != finds || s.may(u) {
			continue
		}
		who := fmt.Sprintf("%s (%s) on GPU %s", u.Allocation, u.Tenant, strings.Join(u.GPUs, ","))
		marks[who] = append(marks[who], u.At.Format(stamp)+" "+u.Mark)
	}
	for who, found := range marks {
		all = append(all, fmt.Sprintf("%s found %d marks of others: %s", who, len(found),
			strings.Join(found[:min(len(found), 3)], ", ")))
	}
	slices.Sort(all)
	return all
}

// blindIn says of which kinds of mark nobody saw one of their own, though they were left.
func blindIn(uses []Use) (all []string) {
	seen, left := map[string]bool{}, map[string]bool{}
	for _, u := range uses {
		kind, _, _ := strings.Cut(u.Mark, ":")
		switch u.What {
		case sees:
			seen[kind] = true
		case leaves:
			left[kind] = true
		}
	}
	for kind := range left {
		if !seen[kind] {
			all = append(all, "of marks of the kind "+kind+" nobody saw even their own: nobody would see others'")
		}
	}
	slices.Sort(all)
	return all
}
