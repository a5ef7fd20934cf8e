//go:build clouds

package aws

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/provisioners"
)

// maxFile bounds the files that a config names.
const maxFile = 1 << 20

// kind is what a price file says of one instance type.
type kind struct {
	Model     string                        `yaml:"model"`
	GPUs      int                           `yaml:"gpus"`
	MemoryMiB int                           `yaml:"memory_mib"`
	GPUName   string                        `yaml:"gpu_name"`
	Prices    map[Market]provisioners.Price `yaml:"price_per_hour"`
}

// completeOffers fills in what the offers leave to the catalogue.
func (c Config) completeOffers() (Config, error) {
	catalogue := map[string]kind{}
	if c.PriceFile != "" {
		var err error
		if catalogue, err = readCatalogue(c.PriceFile); err != nil {
			return Config{}, fmt.Errorf("price_file: %w", err)
		}
	}
	var mistakes []error
	offers := make([]Offer, len(c.Offers))
	for i, o := range c.Offers {
		offers[i] = o.completeFrom(catalogue[o.InstanceType])
		if missing := offers[i].missingField(); missing != "" {
			mistakes = append(mistakes, fmt.Errorf("offers[%d]: %s: is neither here nor in a price file", i, missing))
		}
	}
	c.Offers = offers
	return c, errors.Join(mistakes...)
}

func (o Offer) completeFrom(k kind) Offer {
	o.Model = cmp.Or(o.Model, k.Model)
	o.GPUs = cmp.Or(o.GPUs, k.GPUs)
	o.MemoryMiB = cmp.Or(o.MemoryMiB, k.MemoryMiB)
	o.GPUName = cmp.Or(o.GPUName, k.GPUName)
	if price, known := k.Prices[o.Market]; known && o.Price == nil {
		o.Price = &price
	}
	return o
}

func (o Offer) missingField() string {
	switch {
	case o.Model == "":
		return "model"
	case o.GPUs == 0:
		return "gpus"
	case o.Price == nil:
		return "price_per_hour"
	}
	return ""
}

func readCatalogue(path string) (map[string]kind, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	catalogue := map[string]kind{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&catalogue); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var mistakes []error
	for name, k := range catalogue {
		if !instancePattern.MatchString(name) {
			mistakes = append(mistakes, fmt.Errorf("%q is no instance type", name))
		}
		if k.GPUs < 0 || k.GPUs > 64 || k.MemoryMiB < 0 {
			mistakes = append(mistakes, fmt.Errorf("%s: gpus %d, memory_mib %d", name, k.GPUs, k.MemoryMiB))
		}
		for market := range k.Prices {
			if market != OnDemand && market != Spot && market != CapacityReservation && market != CapacityBlock {
				mistakes = append(mistakes, fmt.Errorf("%s: %q is no market", name, market))
			}
		}
	}
	return catalogue, errors.Join(mistakes...)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err // it names the path
	}
	defer file.Close()
	text, err := httpx.ReadBody(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return text, nil
}
