package home

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
)

// Claim keeps a part of 127.0.0.0/8 for a running home. The claim is an abstract socket. It ends
// with the process that holds it, however that process ends, and every user of the machine sees it.
func Claim(network string) (release func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", "@howdah/net/"+network)
	if err != nil {
		return nil, fmt.Errorf("network %s.0.0/16 is in use by another running home: stop it, or give this home another "+
			"\"network\" in its howdah.json while it has no databases: %w", network, ErrLocked)
	}
	return func() { l.Close() }, nil
}

// chooseNetwork picks a /16 of the loopback network that no running home has. It leaves 127.0 to
// everything else on the machine.
func chooseNetwork(id string) (string, error) {
	hash := fnv.New32a()
	hash.Write([]byte(id))
	start := int(hash.Sum32() % 254)
	for i := range 254 {
		network := fmt.Sprintf("127.%d", 1+(start+i)%254)
		release, err := Claim(network)
		if err == nil {
			release()
			return network, nil
		}
	}
	return "", fmt.Errorf("no free network in 127.0.0.0/8: %w", ErrLocked)
}
