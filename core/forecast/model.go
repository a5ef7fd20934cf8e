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
	hazardDraw    splitmix      // of its own, so that the hazard changes nothing else
	z             [slot]float32 // of the outputs, and of the hazard
}

func newModel() *model {
	return &model{network: newNetwork(networkRate, 1), crossFeatures: newCrossFeatures(crossFeaturesRate), draw: 1,
		hazardDraw: 2}
}

// chancesOf computes the probabilities of one bin of a look, which network.prepareInputs and crossFeatures.findFeatures
// were called with, and the log-odds of the hazard.
func (m *model) chancesOf(l *features, bin int, to *[outputs]float32) (hazard float32) {
	m.network.addOutputs(l, bin)
	z := &m.z
	copy(z[:], m.network.z[:])
	z[hazardOutput] = m.crossFeatures.hazardBase()
	m.crossFeatures.addScores(z)
	hazard = z[hazardOutput]
	for k, x := range offset {
		z[k] -= x
	}
	logistics(z, z)
	copy(to[:], z[:])
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
	ofHazard, hazardOdds := m.drawHazard(e, bin)
	ofChances, odds := m.drawChances(e, bin)
	if !ofHazard && !ofChances {
		return
	}
	m.crossFeatures.findFeatures(&e.look, bin, tenant)
	if ofHazard {
		m.crossFeatures.learnHazard(e.credit[bin], hazardOdds)
	}
	if ofChances {
		m.learnChances(e, bin, odds)
	}
}

// drawChances decides by chance whether a bin's chances are learned from, and with which odds.
func (m *model) drawChances(e *example, bin int) (drawn bool, odds float32) {
	wrong := e.errorsOf(bin, &e.said[bin])
	largest := float32(0)
	for _, x := range wrong[:knots] {
		largest = max(largest, x, -x)
	}
	odds = min(1, max(leastOdd, largest/telling))
	return odds == 1 || m.draw.nextFloat() <= float64(odds), odds
}

// learnChances takes what came of the bin whose features were found into both parts of the model.
func (m *model) learnChances(e *example, bin int, odds float32) {
	var now [outputs]float32
	m.network.prepareInputs(&e.look)
	m.chancesOf(&e.look, bin, &now)
	wrong := e.errorsOf(bin, &now)
	for k := range wrong {
		wrong[k] /= odds
	}
	m.crossFeatures.learnFromErrors(&wrong)
	m.network.learnFromErrors(&wrong)
}
