package admin

import "time"

// KeyCreateRequest asks for a new access key.
type KeyCreateRequest struct {
	Account string `json:"account,omitempty"` // twelve digits; "": the home's
	Name    string `json:"name,omitempty"`    // of the user; "": the access key itself
	// ReadOnly and Policy, a document in IAM's JSON form, limit the key. A policy without text is
	// refused: it never means that there is no policy.
	ReadOnly bool    `json:"read_only,omitempty"`
	Policy   *string `json:"policy,omitempty"`
}

// KeyCreateAnswer is the only place that ever tells the secret.
type KeyCreateAnswer struct {
	Key
	Secret string `json:"secret"`
}

// KeyListAnswer has all access keys, those of the home first.
type KeyListAnswer struct {
	Keys []Key `json:"keys"`
}

// Key is an access key.
type Key struct {
	AccessKey string     `json:"access_key"`
	Account   string     `json:"account"`
	Name      string     `json:"name"`
	ReadOnly  bool       `json:"read_only"`
	Policy    string     `json:"policy,omitempty"`
	Created   *time.Time `json:"created,omitempty"`
	CreatedBy string     `json:"created_by,omitempty"`
	// OfHome says that the key is in the home's credentials file, and may do everything.
	OfHome bool `json:"of_home"`
}

// KeyRequest names an access key.
type KeyRequest struct {
	AccessKey string `json:"access_key"`
}
