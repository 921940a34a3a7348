package admin

// TakeOverRequest makes a copy of a database lead on that is held since the home was restored,
// whatever other copies there are or may be.
type TakeOverRequest struct {
	Database string `json:"database"` // name, or resource id
	Copy     string `json:"copy"`     // HOST/MEMBER
}

// Held says what is known of the databases that wait to be taken over.
type Held struct {
	Restored bool     `json:"restored"`
	From     string   `json:"from,omitempty"`
	Taken    string   `json:"taken,omitempty"`
	Missing  []string `json:"missing,omitempty"` // hosts that did not say yet what they have
	Copies   []Copy   `json:"copies,omitempty"`
}

// Copy is what a host has of a member.
type Copy struct {
	Database string `json:"database"` // name; the resource id where the home does not know it
	Known    bool   `json:"known"`    // the home knows the database
	Held     bool   `json:"held"`     // it waits to be taken over
	Why      string `json:"why,omitempty"`
	Copy     string `json:"copy,omitempty"` // HOST/MEMBER; "": no host has data of it
	Running  bool   `json:"running"`
	Primary  bool   `json:"primary"`
	Timeline int    `json:"timeline"`
	LSN      string `json:"lsn,omitempty"`
	Detail   string `json:"detail,omitempty"`
}
