package httpx_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/httpx"
)

func TestAddressesOfCloudMetadata(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"169.254.169.254": true, "::ffff:169.254.169.254": true,
		"169.254.170.2": true, "fd00:ec2::254": true, "fd00:ec2::23": true, "fe80::1%eth0": false,
		"fd00:ec2::254%eth0": true, "fd20:ce::254": true, "fd00:c1::a9fe:a9fe": true, "100.100.100.200": true,
		"169.254.1.1": false, "fd00::2": false, "10.1.2.3": false, "127.0.0.1": false, "100.100.100.201": false} {
		require.Equal(t, want, httpx.IsCloudMetadata(netip.MustParseAddr(address)), address)
	}
}
