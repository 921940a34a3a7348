package client

import (
	"errors"
	"fmt"
	"net"
	"os"

	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/home"
)

// ErrNowhere says that neither a home nor the environment names an API.
var ErrNowhere = errors.New("no Howdah found: run `howdah up`, name a home with --home, " +
	"or set AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")

// FromHome returns a client of a home on this machine.
func FromHome(h *home.Home) (*Client, error) {
	credentials, err := h.Credentials()
	if err != nil {
		return nil, err
	}
	if len(credentials) == 0 {
		return nil, fmt.Errorf("home %s has no access key", h.Dir)
	}
	ca, err := os.ReadFile(h.CAFile())
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	c := credentials[0]
	return New(Config{
		Endpoint: "https://" + Address(h.Listen), Region: h.Region, CA: ca, Source: "home " + h.Dir,
		Credentials: sigv4.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.Secret},
	})
}

// Address returns where clients on this machine reach a listening address.
func Address(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// FromEnv returns a client from the variables that AWS's own programs read. It returns ErrNowhere
// if none of them names an endpoint.
func FromEnv(getenv func(string) string) (*Client, error) {
	source, endpoint := first(getenv, "AWS_ENDPOINT_URL_RDS", "AWS_ENDPOINT_URL")
	if endpoint == "" {
		return nil, ErrNowhere
	}
	cfg := Config{Endpoint: endpoint, Source: source, Credentials: sigv4.Credentials{
		AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: getenv("AWS_SESSION_TOKEN"),
	}}
	if cfg.Credentials.AccessKeyID == "" || cfg.Credentials.SecretAccessKey == "" {
		return nil, fmt.Errorf("%s is set, but AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not", source)
	}
	if _, cfg.Region = first(getenv, "AWS_REGION", "AWS_DEFAULT_REGION"); cfg.Region == "" {
		cfg.Region = home.DefaultRegion
	}
	if bundle := getenv("AWS_CA_BUNDLE"); bundle != "" {
		ca, err := os.ReadFile(bundle)
		if err != nil {
			return nil, fmt.Errorf("read AWS_CA_BUNDLE: %w", err)
		}
		cfg.CA = ca
	}
	return New(cfg)
}

// first returns the first variable that is set, and its value.
func first(getenv func(string) string, names ...string) (name, value string) {
	for _, n := range names {
		if v := getenv(n); v != "" {
			return n, v
		}
	}
	return "", ""
}

// Find looks in the order that surprises least: at a home that was named; at the environment, which
// names a Howdah on purpose; at a home in the usual place. The home is nil unless the client comes
// from it.
func Find(dir string, named bool, getenv func(string) string) (*Client, *home.Home, error) {
	h, err := home.Open(dir)
	if named && err != nil {
		return nil, nil, err
	}
	if !named {
		c, envErr := FromEnv(getenv)
		if envErr == nil || !errors.Is(envErr, ErrNowhere) {
			return c, nil, envErr
		}
	}
	if errors.Is(err, home.ErrNone) {
		return nil, nil, ErrNowhere
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := FromHome(h)
	return c, h, err
}
