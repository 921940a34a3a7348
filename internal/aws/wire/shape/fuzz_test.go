package shape

import (
	"bytes"
	"errors"
	"testing"

	"howdah/internal/aws/wire"
)

// FuzzCheck checks that any document gets a verdict, and that what the checker
// accepts is an answer: the decoder reads it, and what the encoder makes of it
// is accepted again.
func FuzzCheck(f *testing.F) {
	f.Add("DescribeDBInstances", []byte(instances("<Engine>a</Engine><TagList><Tag><Key>k</Key></Tag></TagList><AllocatedStorage>1</AllocatedStorage><MultiAZ>true</MultiAZ>")))
	f.Add("DescribeDBInstances", []byte(instances("<InstanceCreateTime>2026-11-21T01:21:58.341Z</InstanceCreateTime><Engine><![CDATA[a]]>&#xD;</Engine>")))
	f.Add("AddTagsToResource", []byte(`<?xml version="1.0"?>`+document("AddTagsToResource", "")))
	f.Add("CreateIntegration", []byte(document("CreateIntegration", "<CreateIntegrationResult><AdditionalEncryptionContext><entry><key>a</key><value/></entry></AdditionalEncryptionContext></CreateIntegrationResult>")))
	f.Add("ModifyDBCluster", []byte(document("ModifyDBCluster", "<ModifyDBClusterResult><DBCluster><ServerlessV2ScalingConfiguration><MinCapacity>0.5</MinCapacity></ServerlessV2ScalingConfiguration></DBCluster></ModifyDBClusterResult>")))
	f.Fuzz(func(t *testing.T, action string, body []byte) {
		if err := CheckError(body); err != nil && !errors.Is(err, ErrDiffers) {
			t.Fatalf("not a verdict: %v", err)
		}
		if err := Check(action, body); err != nil {
			if !errors.Is(err, ErrDiffers) {
				t.Fatalf("not a verdict: %v", err)
			}
			return
		}
		a, _ := find(action, "")
		var out any
		if a.Output != nil {
			out = a.Output()
		}
		if err := wire.DecodeResult(body, action, out); err != nil {
			t.Fatalf("accepted, but: %v", err)
		}
		var again bytes.Buffer
		if err := wire.EncodeResult(&again, action, "id", out); err != nil {
			t.Fatalf("accepted, but: %v", err)
		}
		if err := Check(action, again.Bytes()); err != nil {
			t.Fatalf("encoded again: %v", err)
		}
	})
}
