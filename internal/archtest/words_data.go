package archtest

// retiredWords are parts of names. A word that is also good English in another
// meaning does not stand here: unit, rest and stamp are read over by a person.
var retiredWords = []Word{
	{"blow", "injection"},
	{"board", "pool cache"},
	{"clash", "write conflict"},
	{"deed", "operation"},
	{"desk", "cached pool"},
	{"furnish", "start services"},
	{"gpa", "fw"},
	{"hasten", "take earlier boot"},
	{"lane", "group commit"},
	{"misfit", "needs own tx"},
	{"nursery", "process group"},
	{"pool unit", "pool tx"},
	{"rehearse", "dry run"},
	{"rehouse", "replace lost slots"},
	{"shown plan", "preview"},
	{"sink", "change writer"},
	{"staff", "start processes"},
}

// retiredTexts are parts of what users read and type.
var retiredTexts = []Word{
	{"gpa_", "fw_"},
	{"so many has a", `"has this many GPUs"`},
	{"due work waits since", `"oldest due task has waited since"`},
}
