package dcgm

import "context"

// FieldNames are the fields that an exporter may fill in.
func FieldNames() (all []string) {
	for _, f := range fields {
		all = append(all, f.name)
	}
	return all
}

// CheckDial dials an address as a name would have it that resolves to it.
func CheckDial(ctx context.Context, address string, anywhere bool) error {
	conn, err := newTransport(anywhere).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err
}
