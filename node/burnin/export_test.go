package burnin

// Hangs reports whether a child that was left alone has not ended.
func (c *Children) Hangs(uuid string) bool { return c.hangs(uuid) }
