package httpx

// The two ways to the sockets of a port.
var (
	AskForSockets = askForSockets
	ReadSockets   = readSockets
)
