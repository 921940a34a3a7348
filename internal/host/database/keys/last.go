package keys

import (
	"encoding/json"
	"path/filepath"

	"howdah/internal/model/patroni"
)

// LastConfig is of the configuration that Patroni was started with last what it takes no
// other of while it runs.
type LastConfig struct {
	Name string `json:"name"`
	Etcd struct {
		Hosts []string `json:"hosts"`
		Cert  string   `json:"cert"`
	} `json:"etcd3"`
}

// Last reads it; it is empty where there is none. The name there is written after the
// keys were moved, so that it says whether they were.
func (k *Ring) Last() (last LastConfig) {
	text, err := k.User().ReadFile(filepath.Join(k.Dir(), patroni.ConfigFile))
	if err != nil || json.Unmarshal(text, &last) != nil {
		return LastConfig{}
	}
	return last
}

// OwnKey reports whether what was started shows the member's own key.
func (c LastConfig) OwnKey() bool {
	return filepath.Base(filepath.Dir(c.Etcd.Cert)) == filepath.Base(patroni.OwnDir)
}
