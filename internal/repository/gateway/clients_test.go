package gateway

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/repository/store"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/s3test"
)

// journey is what boto3 does: small objects, objects in parts, lists, deletion.
const journey = `
import sys, os, boto3
from botocore.config import Config
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError
url, ca, checksums = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=url, verify=ca, region_name="us-east-1", config=Config(
    s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, request_checksum_calculation=checksums))
B = "main"
for algorithm in [None, "CRC32", "SHA1", "SHA256"]:
    extra = {"ChecksumAlgorithm": algorithm} if algorithm else {}
    s3.put_object(Bucket=B, Key="db-1/a b+c/%s" % algorithm, Body=b"some text", **extra)
for i in range(30):
    s3.put_object(Bucket=B, Key="db-1/many/%02d/x" % i, Body=b"")
big = os.urandom(20 << 20)
open("big", "wb").write(big)
s3.upload_file("big", B, "db-1/big", Config=TransferConfig(multipart_threshold=6 << 20, multipart_chunksize=6 << 20))
s3.download_file(B, "db-1/big", "back", Config=TransferConfig(multipart_threshold=6 << 20, multipart_chunksize=6 << 20))
assert open("back", "rb").read() == big
assert s3.get_object(Bucket=B, Key="db-1/big", Range="bytes=1000-1999")["Body"].read() == big[1000:2000]
assert s3.head_object(Bucket=B, Key="db-1/big")["ContentLength"] == len(big)
for action in ["list_objects_v2", "list_objects"]:
    pages = s3.get_paginator(action).paginate(Bucket=B, Prefix="db-1/", PaginationConfig={"PageSize": 7})
    keys = [o["Key"] for p in pages for o in p.get("Contents", [])]
    assert len(keys) == 35 and keys == sorted(keys), keys
    pages = s3.get_paginator(action).paginate(Bucket=B, Prefix="db-1/many/", Delimiter="/", PaginationConfig={"PageSize": 7})
    prefixes = [o["Prefix"] for p in pages for o in p.get("CommonPrefixes", [])]
    assert prefixes == ["db-1/many/%02d/" % i for i in range(30)], prefixes
up = s3.create_multipart_upload(Bucket=B, Key="db-1/given-up")["UploadId"]
s3.upload_part(Bucket=B, Key="db-1/given-up", UploadId=up, PartNumber=1, Body=b"x")
s3.abort_multipart_upload(Bucket=B, Key="db-1/given-up", UploadId=up)
for call, code in [
    (lambda: s3.get_object(Bucket=B, Key="db-1/none"), "NoSuchKey"),
    (lambda: s3.get_object(Bucket=B, Key="db-2/x"), "AccessDenied"),
    (lambda: s3.put_object(Bucket=B, Key="db-0/x", Body=b""), "AccessDenied"),
    (lambda: s3.upload_part(Bucket=B, Key="db-1/given-up", UploadId=up, PartNumber=1, Body=b"x"), "NoSuchUpload"),
]:
    try:
        call()
        raise SystemExit("no " + code)
    except ClientError as e:
        assert e.response["Error"]["Code"] == code, e
gone = s3.delete_objects(Bucket=B, Delete={"Objects": [{"Key": k} for k in keys]})
assert len(gone["Deleted"]) == 35 and not gone.get("Errors"), gone
assert s3.list_objects_v2(Bucket=B, Prefix="db-1/")["KeyCount"] == 0
`

// Clients that others have made work with the gateway, before either store.
func TestClients(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	bucket, err := store.OpenS3(store.S3Config{
		Endpoint: server.Endpoint, Bucket: s3test.Bucket, Prefix: "home/", CA: server.CA, AccessKey: s3test.AccessKey, Secret: s3test.Secret,
	})
	must(t, err)
	for name, s := range map[string]store.Store{"directory": directory(t), "s3": bucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, s, Config{})
			c := &client{t: t, rig: r, dir: t.TempDir()}
			must(t, os.WriteFile(filepath.Join(c.dir, "ca.crt"), r.caPEM, 0o600))
			python := program(t, "HOWDAH_TEST_PYTHON", "python3")
			for _, checksums := range []string{"when_supported", "when_required"} {
				c.run(python, "-c", journey, r.url, "ca.crt", checksums)
			}
			c.cli(program(t, "HOWDAH_TEST_AWS", "aws"))
			c.cli(program(t, "HOWDAH_TEST_AWS2", "aws"))
			if len(r.failed) != 0 {
				t.Errorf("failed: %v", r.failed)
			}
			if n := slices.IndexFunc(r.written, func(o Object) bool { return o.Key == "db-1/big" && o.Size == 20<<20 }); n < 0 {
				t.Errorf("told of %+v", r.written)
			}
		})
	}
}

// client runs programs that reach the gateway.
type client struct {
	t   *testing.T
	rig *rig
	dir string
}

func (c *client) run(program string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience.For(time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_DEFAULT_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PAGER=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %.40q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// cli does a journey with the AWS CLI.
func (c *client) cli(program string) {
	c.t.Helper()
	aws := func(args ...string) string {
		return c.run(program, append([]string{"--endpoint-url", c.rig.url, "--ca-bundle", "ca.crt"}, args...)...)
	}
	big := make([]byte, 17<<20+5)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(big)
	must(c.t, os.WriteFile(filepath.Join(c.dir, "file"), big, 0o600))
	aws("s3", "cp", "file", "s3://main/db-1/cli/big")
	aws("s3", "cp", "s3://main/db-1/cli/big", "again")
	if again, err := os.ReadFile(filepath.Join(c.dir, "again")); err != nil || !bytes.Equal(big, again) {
		c.t.Errorf("%d bytes came back, %v", len(again), err)
	}
	if text := aws("s3", "ls", "s3://main/db-1/cli/"); !strings.Contains(text, "17825797 big") {
		c.t.Errorf("listed: %s", text)
	}
	aws("s3", "rm", "--recursive", "s3://main/db-1/cli/")
}

// program returns a program that scripts/test names.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return testkit.NeedProgram(t, name)
}
