package archtest

// retiredWords are parts of names. A word that is also good English in another
// meaning does not stand here: unit, rest and stamp are read over by a person.
var retiredWords = []Word{
	{"blow", "injection"},
	{"board", "pool cache"},
	{"cap standing", "cap usage"},
	{"clash", "write conflict"},
	{"crosses", "cross features"},
	{"deed", "operation"},
	{"desk", "cached pool"},
	{"furnish", "start services"},
	{"gpa", "fw"},
	{"guess", "speculative"},
	{"guessed", "speculative"},
	{"guesses", "speculative"},
	{"hasten", "take earlier boot"},
	{"heard", "ingested"},
	{"lane", "group commit"},
	{"lull", "idle"},
	{"misfit", "needs own tx"},
	{"nursery", "process group"},
	{"pool unit", "pool tx"},
	{"purse", "budget"},
	{"rehearse", "dry run"},
	{"rehouse", "replace lost slots"},
	{"shown plan", "preview"},
	{"sink", "change writer"},
	{"staff", "start processes"},
	{"stairs", "steps"},
	{"tally", "reliability, or count"},
	{"voice", "calibration"},
}

// retiredTexts are parts of what users read and type.
var retiredTexts = []Word{
	{"gpa_", "fw_"},
	{"so many has a", `"has this many GPUs"`},
	{"due work waits since", `"oldest due task has waited since"`},
}
