package forecast

// bins cut the GPUs beyond the present demand into stretches that are predicted
// as one: level j is needed when demand rises by j or more.
const bins = 18

var (
	firstLevel = [bins]int{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385}
	binWidth   = [bins]int{1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 128}
)

// topLevel is the last level that is predicted.
const topLevel = 512

// MaxHeld is the most GPUs beyond the demand that are ever held.
const MaxHeld = topLevel

// binOf returns the bin of a level from 1 to topLevel.
func binOf(level int) int {
	b := 0
	for b+1 < bins && firstLevel[b+1] <= level {
		b++
	}
	return b
}

// knots are the horizons that are predicted, in seconds.
const knots = 6

var knot = [knots]float64{60, 120, 300, 600, 1200, 2400}

// longestKnot is the time after which all of a prediction is known to have come
// true or not, in seconds.
const longestKnot = 2400

// outputs of the model: the chance of a rise to a bin within each knot, and the
// part of the bin's GPUs at which some job's need ends, if the rise comes.
const (
	landing = knots
	outputs = knots + 1
)

// offset is what the logit of each output begins with: rises are rare.
var offset = [outputs]float32{4, 3.7, 3.2, 2.7, 2.2, 1.7, 0}
