package ssh

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

const mostGPUs = 1024

func (c Config) checkHosts() error {
	var mistakes []error
	if len(c.Hosts) == 0 {
		mistakes = append(mistakes, errors.New("hosts: want at least one"))
	}
	names, addresses, offers := map[string]bool{}, map[string]bool{}, map[[2]string]provisioners.Offer{}
	for i, h := range c.Hosts {
		mistake := func(err error) {
			if err != nil {
				mistakes = append(mistakes, fmt.Errorf("hosts[%d]: %w", i, err))
			}
		}
		mistake(h.validate(c.KnownHosts != ""))
		offer := h.portOffer(c.Boot)
		key := [2]string{offer.Type, offer.Region}
		first, seen := offers[key]
		switch {
		case names[h.Name] || addresses[h.dialAddress()]:
			mistake(fmt.Errorf("name, address: %s at %s is there twice", h.Name, h.Address))
		case seen && first != offer:
			mistake(fmt.Errorf("type: %s in %q has another model, number of GPUs, memory or price than a host before",
				h.Type, h.Region))
		}
		names[h.Name], addresses[h.dialAddress()], offers[key] = true, true, offer
	}
	return errors.Join(mistakes...)
}

func (h Host) validate(known bool) error {
	mistakes := []error{provisioners.CheckName(h.Name)}
	mistake := func(wrong bool, format string, args ...any) {
		if wrong {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	host, port, err := net.SplitHostPort(h.dialAddress())
	_, portErr := strconv.ParseUint(port, 10, 16)
	mistake(err != nil || portErr != nil || host == "", "address: %q is not host:port", h.Address)
	mistake(h.User == "", "user: is empty, and so is the one for all hosts")
	mistake(h.Type == "" || h.Model == "", "type, model: is empty")
	mistake(h.GPUs < 1 || h.GPUs > mostGPUs, "gpus: %d is not between 1 and %d", h.GPUs, mostGPUs)
	mistake(h.MemoryMiB < 0, "memory_mib: %d is negative", h.MemoryMiB)
	mistake(h.Price < 0, "price_per_hour: %d is negative", h.Price)
	mistake(h.HostKey == "" && !known,
		"host_key: is empty, and there is no known_hosts: a key is not trusted because it is the first one seen")
	if h.HostKey != "" {
		_, err := parseHostKey(h.HostKey)
		mistake(err != nil, "host_key: %v", err)
	}
	return errors.Join(mistakes...)
}

// dialAddress is the address with a port.
func (h Host) dialAddress() string {
	if _, _, err := net.SplitHostPort(h.Address); err == nil {
		return h.Address
	}
	return net.JoinHostPort(h.Address, "22")
}

// wayIn is how holders get in: as the user that the adapter itself comes as, who holds
// the machine's GPUs.
func (h Host) wayIn() access.Address {
	host, port, _ := net.SplitHostPort(h.dialAddress())
	number, _ := strconv.ParseUint(port, 10, 16) // validate has read it
	return access.Address{Kind: access.SSH, User: h.User, Host: host, Port: int(number)}
}

func (h Host) portOffer(boot Boot) provisioners.Offer {
	return provisioners.Offer{
		Type: h.Type, Region: h.Region, Model: h.Model, GPUs: h.GPUs, MemoryMiB: h.MemoryMiB,
		Price: money.MicroUSD(h.Price),
		Boot:  provisioners.Boot{P50: boot.P50, P95: boot.P95},
	}
}
