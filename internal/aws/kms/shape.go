package kms

import (
	"encoding/json"
	"fmt"
	"time"

	"howdah/internal/aws/wire"
	"howdah/internal/identity/kms"
)

// seconds is a time as KMS writes it.
type seconds time.Time

func (s seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", float64(time.Time(s).UnixMilli())/1000), nil
}

func (s *seconds) UnmarshalJSON(text []byte) error {
	var number float64
	if err := json.Unmarshal(text, &number); err != nil {
		return err
	}
	*s = seconds(time.UnixMilli(int64(number * 1000)))
	return nil
}

type createKeyInput struct {
	Description           string
	KeyUsage              string
	KeySpec               string
	CustomerMasterKeySpec string
	Origin                string
	CustomKeyStoreId      string
	XksKeyId              string
	Policy                string
	MultiRegion           bool
	Tags                  []struct{ TagKey, TagValue string }
}

type keyInput struct {
	KeyId               string
	PendingWindowInDays *int
}

type listInput struct {
	KeyId  string
	Limit  *int
	Marker string
}

type keyMetadata struct {
	AWSAccountId          string
	KeyId                 string
	Arn                   string
	CreationDate          seconds
	Enabled               bool
	Description           string
	KeyUsage              string
	KeyState              string
	DeletionDate          *seconds `json:",omitempty"`
	Origin                string
	KeyManager            string
	CustomerMasterKeySpec string
	KeySpec               string
	EncryptionAlgorithms  []string
	MultiRegion           bool
}

type keyOutput struct{ KeyMetadata keyMetadata }

type deletionOutput struct {
	KeyId               string
	KeyState            string   `json:",omitempty"`
	DeletionDate        *seconds `json:",omitempty"`
	PendingWindowInDays int      `json:",omitempty"`
}

type keyEntry struct{ KeyId, KeyArn string }

type listKeysOutput struct {
	Keys       []keyEntry
	NextMarker string `json:",omitempty"`
	Truncated  bool
}

type aliasEntry struct {
	AliasName       string
	AliasArn        string
	TargetKeyId     string   `json:",omitempty"`
	CreationDate    *seconds `json:",omitempty"`
	LastUpdatedDate *seconds `json:",omitempty"`
}

type listAliasesOutput struct {
	Aliases   []aliasEntry
	Truncated bool
}

func keyOut(k kms.Key) *keyOutput {
	out := keyMetadata{
		AWSAccountId: k.Account, KeyId: k.ID, Arn: k.ARN(), CreationDate: seconds(k.Created), Enabled: k.Usable(), Description: k.Description,
		KeyUsage: "ENCRYPT_DECRYPT", KeyState: keyState(k), Origin: "AWS_KMS", KeyManager: "CUSTOMER",
		CustomerMasterKeySpec: "SYMMETRIC_DEFAULT", KeySpec: "SYMMETRIC_DEFAULT", EncryptionAlgorithms: []string{"SYMMETRIC_DEFAULT"},
	}
	if k.Service {
		out.KeyManager = "AWS"
	}
	if !k.DeleteAt.IsZero() {
		out.DeletionDate = wire.Some(seconds(k.DeleteAt))
	}
	return &keyOutput{out}
}
