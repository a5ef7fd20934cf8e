package server

// Routes lists method and pattern of everything that is registered.
func (s *Server) Routes() []string {
	var out []string
	for _, r := range s.engine.Routes() {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

// AcceptsJSON reports whether a body passes the check of its form.
func AcceptsJSON(data []byte) bool { return checkJSON(data) == nil }
