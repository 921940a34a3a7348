package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state/etcd"
)

// config is what the gate needs of the configuration that its Patroni runs with.
type config struct {
	Scope   string `json:"scope"`
	Name    string `json:"name"`
	RestAPI struct {
		Connect string `json:"connect_address"`
	} `json:"restapi"`
	Etcd struct {
		Hosts []string `json:"hosts"`
		Cert  string   `json:"cert"`
	} `json:"etcd3"`
	PostgreSQL struct {
		DataDir string `json:"data_dir"`
	} `json:"postgresql"`
}

// PassMember is Pass for the member whose Patroni has its configuration at path, with
// that member's certificate.
func PassMember(ctx context.Context, path string, log *slog.Logger) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the member's configuration: %w", err)
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	pair, err := certs.Load(filepath.Dir(c.Etcd.Cert))
	if err != nil {
		return fmt.Errorf("load the member's certificate: %w", err)
	}
	identity, err := pair.ClientTLS()
	if err != nil {
		return fmt.Errorf("load the member's certificate: %w", err)
	}
	var urls []string
	for _, host := range c.Etcd.Hosts {
		urls = append(urls, "https://"+host)
	}
	client, err := etcd.Dial(ctx, urls, pair)
	if err != nil {
		return err
	}
	defer client.Close()
	name := patroni.MemberName(c.Name)
	return Pass(ctx, Config{
		Database: c.Scope, Name: name, PatroniName: c.Name, Client: client,
		Own: "https://" + c.RestAPI.Connect + "/patroni", DataDir: c.PostgreSQL.DataDir, Patience: DefaultPatience,
		Ask:      Asker(&http.Client{Transport: &http.Transport{TLSClientConfig: identity, DisableKeepAlives: true}}),
		Received: Receiver(identity),
		Log:      log.With("member", member.ID(c.Scope, name)),
	})
}
