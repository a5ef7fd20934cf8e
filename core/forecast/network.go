package forecast

import "math"

// The layers of the network.
const (
	hidden1 = 24
	hidden2 = 12
)

// leak is the slope of a unit below zero.
const leak = 0.05

// layer is a dense layer: for each unit its weights and then its bias, and for
// each weight the sum of its squared gradients and the step that follows from it.
type layer struct {
	in, out int
	weights []float32
	squares []float32
	steps   []float32
}

// network is a small perceptron that learns from one example at a time by
// AdaGrad (Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online
// Learning and Stochastic Optimization", JMLR 2011). Inputs are standardised by
// running means, outputs are logits.
type network struct {
	layers   [3]layer
	mean     [inputs]float32
	variance [inputs]float32
	scale    [inputs]float32 // one by the spread, if scaled
	scaled   bool
	seen     float64
	learned  int
	rate     float32

	x      [inputs + 1]float32 // and a one, for the bias
	common [hidden1]float32
	a1     [hidden1]float32
	a2     [hidden2]float32
	z      [outputs]float32
	d1     [hidden1]float32
	d2     [hidden2]float32
}

// newNetwork returns a network with random weights, drawn from the seed.
func newNetwork(rate float64, seed uint64) *network {
	n := &network{rate: float32(rate)}
	n.x[inputs] = 1
	draw := splitmix(seed)
	sizes := [4]int{inputs, hidden1, hidden2, outputs}
	for i := range n.layers {
		l := &n.layers[i]
		l.in, l.out = sizes[i], sizes[i+1]
		count := (l.in + 1) * l.out
		l.weights, l.squares, l.steps = make([]float32, count), make([]float32, count), make([]float32, count)
		spread := 1.4 * math.Sqrt(2/float64(l.in))
		for j := range l.weights {
			if i < 2 { // the last layer begins at zero: nothing is known
				l.weights[j] = float32((draw.nextFloat() + draw.nextFloat() + draw.nextFloat() - 1.5) * spread)
			}
		}
	}
	n.updateSteps()
	return n
}

// updateSteps works out the steps from the squares.
func (n *network) updateSteps() {
	for i := range n.layers {
		l := &n.layers[i]
		for j, s := range l.squares {
			l.steps[j] = n.rate / float32(math.Sqrt(float64(s)+damping))
		}
	}
}

// observeInputs takes the inputs of one bin into the running means.
func (n *network) observeInputs(l *features, bin int) {
	n.seen++
	share := float32(1 / min(n.seen, 20000))
	n.scaled = false
	for i := range n.mean {
		d := l.inputOf(i, bin) - n.mean[i]
		n.mean[i] += share * d
		n.variance[i] += share * (d*d*(1-share) - n.variance[i])
	}
}

// prepareInputs computes what the bins of a look have in common. It is to be called again
// whenever the network has learned.
func (n *network) prepareInputs(l *features) {
	n.updateScale()
	n.standardise(l.tenant[:], 0)
	first := &n.layers[0]
	multiplyRows(n.common[:], first.weights, n.x[:tenantInputs], inputs+1)
}

// updateScale works out the scale from the variances.
func (n *network) updateScale() {
	if n.scaled {
		return
	}
	for i, v := range n.variance {
		n.scale[i] = 1 / float32(math.Sqrt(float64(v)+0.01))
	}
	n.scaled = true
}

// standardise writes inputs from place at on into x, in units of their spread and
// bounded to four of them.
func (n *network) standardise(raw []float32, at int) {
	for i, v := range raw {
		n.x[at+i] = max(-4, min(4, (v-n.mean[at+i])*n.scale[at+i]))
	}
}

// addOutputs computes the logits of one bin of the look that begin was called with
// into z.
func (n *network) addOutputs(l *features, bin int) {
	n.standardise(l.bin[bin][:], tenantInputs)
	first := &n.layers[0]
	multiplyRows(n.a1[:], first.weights[tenantInputs:], n.x[tenantInputs:], inputs+1)
	for j, v := range n.a1 {
		n.a1[j] = leakyReLU(n.common[j] + v)
	}
	n.layers[1].apply(n.a1[:], n.a2[:])
	for j, v := range n.a2 {
		n.a2[j] = leakyReLU(v)
	}
	n.layers[2].apply(n.a2[:], n.z[:])
}

func leakyReLU(v float32) float32 {
	if v < 0 {
		return v * leak
	}
	return v
}

func (l *layer) apply(x, to []float32) {
	multiplyRows(to, l.weights, x, l.in+1)
	for j := range to {
		to[j] += l.weights[j*(l.in+1)+l.in]
	}
}

// learnFromErrors takes one step against the errors of the logits that forward computed
// last.
func (n *network) learnFromErrors(errors *[outputs]float32) {
	if n.learned++; n.learned%32 == 0 || n.learned < 200 {
		n.updateSteps()
	}
	n.layers[2].backpropagate(errors[:], n.a2[:], n.d2[:])
	bendBack(n.a2[:], n.d2[:])
	n.layers[1].backpropagate(n.d2[:], n.a1[:], n.d1[:])
	bendBack(n.a1[:], n.d1[:])
	n.layers[0].backpropagate(n.d1[:], n.x[:inputs], nil)
}

func bendBack(a, d []float32) {
	for i := range d {
		if a[i] < 0 {
			d[i] *= leak
		}
	}
}

// backpropagate adds up the errors of the inputs, if asked to, and changes the weights.
func (l *layer) backpropagate(errors, x, to []float32) {
	clear(to)
	for j, e := range errors {
		w := l.weights[j*(l.in+1) : (j+1)*(l.in+1)][:len(to)]
		for i, v := range w {
			to[i] += e * v
		}
		l.stepUnit(j, x, e)
	}
}

func (l *layer) stepUnit(unit int, x []float32, e float32) {
	from, n := unit*(l.in+1), l.in
	w, s, r := l.weights[from:from+n+1], l.squares[from:from+n+1], l.steps[from:from+n+1]
	s[n] += e * e
	w[n] -= r[n] * e
	stepRow(w, s, r, x, e)
}

// splitmix is the generator splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
type splitmix uint64

// nextFloat returns a number from 0 up to 1.
func (s *splitmix) nextFloat() float64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}
