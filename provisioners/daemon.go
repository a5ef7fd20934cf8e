package provisioners

// DaemonStarter is a Provisioner that can start the node's daemon on its machines.
type DaemonStarter interface {
	// StartsDaemons reports whether it is configured to, so that Create is to be given a
	// Spec.Daemon.
	StartsDaemons() bool
}

// Daemon is what the daemon of a machine's node needs to join the control plane. Zero: none is
// started.
type Daemon struct {
	URL      string // of the control plane, as the machine reaches it
	Token    JoinToken
	Programs DaemonPrograms
}

// DaemonPrograms are what the control plane hands out of the daemon, by the architecture as Go
// calls it. Zero ones: it hands out none.
type DaemonPrograms struct {
	AMD64, ARM64             DaemonProgram
	StaticAMD64, StaticARM64 DaemonProgram // for machines on which the others do not run
}

// DaemonDownloader is a DaemonStarter whose machines download the daemon.
type DaemonDownloader interface {
	// DownloadsDaemons reports whether it is configured to, so that Spec.Daemon has to have
	// Programs.
	DownloadsDaemons() bool
}

// DaemonProgram is the daemon's program for one architecture.
type DaemonProgram struct {
	URL    string // where anybody can download it
	SHA256 string // of it, in hexadecimal
}

// JoinToken lets the daemon of one node join once. It prints as ***, and is stored by no adapter.
type JoinToken string

// String hides the token.
func (JoinToken) String() string { return "***" }

// GoString hides the token.
func (JoinToken) GoString() string { return "***" }

// MarshalText hides the token.
func (JoinToken) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Reveal returns the token, for the machine that it is for.
func (t JoinToken) Reveal() string { return string(t) }
