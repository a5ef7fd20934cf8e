package worker

// Ring has due tasks of a worker sent at once instead of with the next tick.
func Ring(w *Worker) { w.relay.Ring() }
