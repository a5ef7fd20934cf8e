package forecast

// The rates at which the two parts of the model learn.
const (
	networkRate       = 0.002
	crossFeaturesRate = 0.002
	// teachingRate is that of the cross features while a prior is learned.
	teachingRate = 0.005
)

// model predicts the outputs of a bin as the sum of a network and a linear model
// of cross features, trained together (Cheng et al., "Wide & Deep Learning for
// Recommender Systems", DLRS 2016).
type model struct {
	network       *network
	crossFeatures *crossFeatures
	draw          splitmix
	hazardDraw    splitmix // of its own, so that the hazard changes nothing else
	z             [outputs]float32
}

func newModel() *model {
	return &model{network: newNetwork(networkRate, 1), crossFeatures: newCrossFeatures(crossFeaturesRate), draw: 1,
		hazardDraw: 2}
}

// chancesOf computes the probabilities of one bin of one tenant's look, which network.prepareInputs was called with,
// and the log-odds of the hazard.
func (m *model) chancesOf(l *features, bin, tenant int, to *[outputs]float32) (hazard float32) {
	m.network.addOutputs(l, bin)
	m.z = m.network.z
	m.crossFeatures.findFeatures(l, bin, tenant)
	hazard = m.crossFeatures.addScores(&m.z)
	for k := range to {
		to[k] = logistic(m.z[k] - offset[k])
	}
	return hazard
}

// The error from which an example is sure to be learned from, and the least
// chance that it is.
const (
	telling  = 1
	leastOdd = 0.03
)

// learnBin takes what came of one bin into the model. Examples that were predicted
// well say little: they are learned from by chance, and count for those that were
// passed over.
func (m *model) learnBin(e *example, bin, tenant int) {
	m.learnHazard(e, bin, tenant)
	wrong := e.errorsOf(bin, &e.said[bin])
	largest := float32(0)
	for _, x := range wrong[:knots] {
		largest = max(largest, x, -x)
	}
	odds := min(1, max(leastOdd, largest/telling))
	if odds < 1 && m.draw.nextFloat() > float64(odds) {
		return
	}
	var now [outputs]float32
	m.network.prepareInputs(&e.look)
	m.chancesOf(&e.look, bin, tenant, &now)
	wrong = e.errorsOf(bin, &now)
	for k := range wrong {
		wrong[k] /= odds
	}
	m.crossFeatures.learnFromErrors(&wrong)
	m.network.learnFromErrors(&wrong)
}
