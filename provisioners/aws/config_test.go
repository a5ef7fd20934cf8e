//go:build clouds

package aws_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws"
)

func decodeStrictly(t *testing.T, text string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(into), text)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := aws.Config{ImageID: "ami-1", Offers: []aws.Offer{{}}}.WithDefaults()
	require.Equal(t, "aws", c.Name)
	require.Equal(t, aws.ProbeConsole, c.Probe)
	require.Equal(t, aws.Private, c.Address)
	require.Equal(t, time.Hour, c.UnclaimedAfter)
	require.Equal(t, aws.OnDemand, c.Offers[0].Market)
	require.Equal(t, "ami-1", c.Offers[0].ImageID)
	require.Equal(t, aws.Boot{P50: 5 * time.Minute, P95: 12 * time.Minute}, c.Offers[0].Boot)
	require.Equal(t, c, c.WithDefaults())
}

func TestMistakesAreAllNamed(t *testing.T) {
	t.Parallel()
	var c aws.Config
	decodeStrictly(t, `
name: AWS!
region: Frankfurt
endpoint: http://ec2.example.com
address: both
probe: guess
daemon: sure
root_volume_gib: -1
unclaimed_after: 1m
call_timeout: 1ms
retry_wait: 2h
security_groups: [default]
offers:
  - {type: "", instance_type: p5, market: auction, gpus: 99, memory_mib: -1}
  - {type: a, instance_type: p5.48xlarge, market: spot, reservation_id: cr-1, max_spot_price: 0, image_id: ami-1}
  - {type: a, instance_type: p5.48xlarge, market: capacity_block, image_id: ami-1, boot: {p50: 5m, p95: 1m}}
  - {type: b, instance_type: p5.48xlarge, market: capacity_block, reservation_id: cr-2, image_id: ami-1,
     max_spot_price: 1, from: 2026-03-02T09:00:00Z, until: 2026-03-02T09:50:00Z}
`, &c)
	_, err := aws.New(c, clock.NewManual(start))
	require.Error(t, err)
	for _, want := range []string{
		"name \"AWS!\"", "region: \"Frankfurt\"", "endpoint: ec2.example.com would carry requests unencrypted",
		"address: \"both\"",
		"daemon: \"sure\"",
		"probe: \"guess\"", "root_volume_gib: -1", "unclaimed_after: 1m0s", "call_timeout: 1ms", "retry_wait: 2h",
		"security_groups: \"default\"",
		"offers[0]: type: \"\"", "offers[0]: instance_type: \"p5\"", "offers[0]: market: \"auction\"",
		"offers[0]: gpus: 99",
		"offers[0]: memory_mib: -1", "offers[0]: image_id: is empty",
		"offers[0]: model: is neither here nor in a price file",
		"offers[1]: reservation_id: market spot has none", "offers[1]: max_spot_price: is not positive",
		"offers[2]: type \"a\" is there twice", "offers[2]: reservation_id: is empty",
		"offers[2]: from, until: a capacity block has both",
		"offers[2]: boot: want 0 < p50 <= p95", "offers[3]: until: nothing can be used",
		"offers[3]: max_spot_price: market capacity_block has none",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = aws.New(aws.Config{}, clock.NewManual(start))
	require.ErrorContains(t, err, "offers: want at least one")
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"": "", "https://ec2.eu-central-1.amazonaws.com": "", "http://127.0.0.1:1234": "", "http://localhost": "",
		"http://[::1]:80": "",
		"http://10.0.0.1": "unencrypted", "ftp://127.0.0.1": "unencrypted", "nonsense": "is no URL",
		"https://user:pw@x.example": "without user",
		"https://x.example?key=1":   "without user", "http://localhost.example.com": "unencrypted",
	} {
		c := aws.Config{Region: "eu-central-1", Endpoint: endpoint, ImageID: image, Offers: testOffers()}.WithDefaults()
		err := c.Validate()
		if want == "" {
			require.NoError(t, err, endpoint)
			continue
		}
		require.ErrorContains(t, err, want, endpoint)
		require.NotContains(t, err.Error(), "pw@")
	}
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	s := newSite(t, regionConfig())
	s.config.PriceFile = filepath.Join(t.TempDir(), "prices.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(s.config.PriceFile, []byte(text), 0o600)) }
	s.config.Offers = []aws.Offer{
		{Type: "a", InstanceType: "p5.48xlarge"},
		{Type: "b", InstanceType: "p5.48xlarge", Market: aws.Spot, Model: "mine", Price: priceOf(7)},
	}
	write("p5.48xlarge: {model: h100-80g, gpus: 8, memory_mib: 81559, price_per_hour: {on_demand: 55.04, spot: 20}}")
	p := s.openProvisioner(t)
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []provisioners.Offer{
		{Type: "a", Region: "test-central-1", Model: "h100-80g", GPUs: 8, MemoryMiB: 81_559, Price: 55_040_000,
			MinBilling: time.Minute,
			Boot:       provisioners.Boot{P50: 5 * time.Minute, P95: 12 * time.Minute}},
		{Type: "b", Region: "test-central-1", Model: "mine", GPUs: 8, MemoryMiB: 81_559, Price: money.MicroUSD(7),
			MinBilling: time.Minute,
			Boot:       provisioners.Boot{P50: 5 * time.Minute, P95: 12 * time.Minute}, Interruptible: true,
			Notice: 2 * time.Minute},
	}, offers)
	for text, want := range map[string]string{
		"p5.48xlarge: {modell: h100}":                  "field modell not found",
		"p5.48xlarge: {price_per_hour: {auction: 1}}":  "\"auction\" is no market",
		"p5.48xlarge: {price_per_hour: {spot: cheap}}": "price",
		"p5: {gpus: 8}":                           "\"p5\" is no instance type",
		"p5.48xlarge: {gpus: -8}":                 "gpus -8",
		"p5.48xlarge: {model: h100-80g, gpus: 8}": "price_per_hour: is neither here nor in a price file",
		"":                               "model: is neither here nor in a price file",
		"#" + strings.Repeat("x", 1<<20): "larger than",
	} {
		write(text)
		_, err := aws.New(s.config, s.clock)
		require.ErrorContains(t, err, want)
	}
	s.config.PriceFile += ".none"
	_, err = aws.New(s.config, s.clock)
	require.ErrorContains(t, err, "price_file: open")
}

// The examples of the manual are complete configs, with the keys that exist.
func TestManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/provisioners/aws.md")
	require.NoError(t, err)
	_, policy, _ := strings.Cut(string(text), "```json\n")
	policy, _, _ = strings.Cut(policy, "```")
	require.True(t, json.Valid([]byte(policy)))
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	require.Len(t, blocks, 3)
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	catalogue, _, _ := strings.Cut(blocks[2], "```")
	require.NoError(t, os.WriteFile(prices, []byte(catalogue), 0o600))
	script := filepath.Join(t.TempDir(), "node-setup.sh")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600))
	for _, block := range blocks[:2] {
		example, _, _ := strings.Cut(block, "```")
		var file struct {
			Provisioners []struct {
				Kind   string     `yaml:"kind"`
				Config aws.Config `yaml:"config"`
			} `yaml:"provisioners"`
			Pools []map[string]any `yaml:"pools"`
		}
		decodeStrictly(t, example, &file)
		require.Equal(t, "aws", file.Provisioners[0].Kind)
		c := file.Provisioners[0].Config
		require.NoError(t, c.WithDefaults().Validate())
		if c.PriceFile != "" {
			c.PriceFile = prices
		}
		if c.UserDataFile != "" {
			c.UserDataFile = script
		}
		c.Profile, c.CredentialsFile, c.Endpoint = "", newSite(t, regionConfig()).config.CredentialsFile, ""
		p, err := aws.New(c, clock.NewManual(start))
		require.NoError(t, err)
		offers, err := p.Offers(t.Context())
		require.NoError(t, err)
		for _, pool := range file.Pools {
			found := false
			for _, offer := range offers {
				found = found || offer.Type == pool["instance_type"] && offer.Region == pool["region"]
			}
			require.True(t, found, "pool %v has no offer", pool["name"])
		}
	}
}
