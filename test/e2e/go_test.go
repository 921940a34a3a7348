package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/smithy-go"
	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit/patience"
)

const goPassword = "first-Secret-1"

// goJourney is the journey of a program with the Go SDK: it creates, waits, logs in, pages, and
// tells errors apart by their types.
func goJourney(t *testing.T, env map[string]string) {
	client := goClient(t, env)
	ctx := t.Context()
	for _, name := range []string{"gone-1", "gone-2"} {
		made, err := client.CreateDBInstance(ctx, &rds.CreateDBInstanceInput{
			DBInstanceIdentifier: &name, DBInstanceClass: aws.String("db.t3.micro"), Engine: aws.String("postgres"),
			AllocatedStorage: aws.Int32(20), MasterUsername: aws.String("boss"), MasterUserPassword: aws.String(goPassword), BackupRetentionPeriod: aws.Int32(0),
			Tags: []types.Tag{{Key: aws.String("made-by"), Value: aws.String("Go")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if *made.DBInstance.DBInstanceStatus != "creating" || made.DBInstance.Endpoint != nil {
			t.Errorf("a new instance: %+v", made.DBInstance)
		}
	}
	waiter := rds.NewDBInstanceAvailableWaiter(client, func(o *rds.DBInstanceAvailableWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Second, time.Second
	})
	shown, err := waiter.WaitForOutput(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String("gone-1")}, patience.For(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	goLogin(t, env, *shown.DBInstances[0].Endpoint.Address)
	goPages(t, client)
	goErrors(t, client)
	goDelete(t, client, "gone-1", "gone-2")
}

func goClient(t *testing.T, env map[string]string) *rds.Client {
	t.Helper()
	return rds.NewFromConfig(goConfig(t, env))
}

func goConfig(t *testing.T, env map[string]string) aws.Config {
	t.Helper()
	return aws.Config{
		Region: env["AWS_REGION"], BaseEndpoint: aws.String(env["AWS_ENDPOINT_URL"]), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: env["AWS_ACCESS_KEY_ID"], SecretAccessKey: env["AWS_SECRET_ACCESS_KEY"]}, nil
		}),
		HTTPClient: &http.Client{Transport: whole{&http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority(t, env)}}}},
	}
}

// whole gives each request a body of its own. The SDK closes its body as soon as it has an answer.
// If that comes before the transport has noticed that it sent everything, the transport takes it
// for a failure, and closes the connection with the answer in it.
type whole struct{ http.RoundTripper }

func (w whole) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return w.RoundTripper.RoundTrip(r)
}

// authority returns the home's authority, as the environment names it.
func authority(t *testing.T, env map[string]string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(env["AWS_CA_BUNDLE"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("the bundle has no certificate")
	}
	return pool
}

func goLogin(t *testing.T, env map[string]string, address string) {
	t.Helper()
	config, err := pgx.ParseConfig("host=" + address + " user=boss password=" + goPassword + " dbname=postgres sslmode=verify-full sslrootcert=" + env["AWS_CA_BUNDLE"])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var version string
	if err := conn.QueryRow(t.Context(), "SELECT version()").Scan(&version); err != nil {
		t.Error(err)
	}
}

func goPages(t *testing.T, client *rds.Client) {
	t.Helper()
	pages := rds.NewDescribeDBInstancesPaginator(client, &rds.DescribeDBInstancesInput{
		MaxRecords: aws.Int32(20), Filters: []types.Filter{{Name: aws.String("engine"), Values: []string{"postgres"}}},
	})
	var names []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.DBInstances {
			names = append(names, *i.DBInstanceIdentifier)
		}
	}
	if len(names) != 2 || names[0] != "gone-1" || names[1] != "gone-2" {
		t.Errorf("instances %q", names)
	}
}

// goErrors checks that the SDK makes an error's type of its code.
func goErrors(t *testing.T, client *rds.Client) {
	t.Helper()
	_, err := client.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String("none")})
	if none := (*types.DBInstanceNotFoundFault)(nil); !errors.As(err, &none) {
		t.Errorf("no instance: %v", err)
	}
	_, err = client.DeleteDBCluster(t.Context(), &rds.DeleteDBClusterInput{DBClusterIdentifier: aws.String("none")})
	if none := (*types.DBClusterNotFoundFault)(nil); !errors.As(err, &none) {
		t.Errorf("no cluster: %v", err)
	}
	_, err = client.StartDBInstance(t.Context(), &rds.StartDBInstanceInput{DBInstanceIdentifier: aws.String("gone-1")})
	if state := (*types.InvalidDBInstanceStateFault)(nil); !errors.As(err, &state) {
		t.Errorf("a start of what runs: %v", err)
	}
	_, err = client.StartExportTask(t.Context(), &rds.StartExportTaskInput{
		ExportTaskIdentifier: aws.String("e"), SourceArn: aws.String("arn"), S3BucketName: aws.String("b"), IamRoleArn: aws.String("r"), KmsKeyId: aws.String("k"),
	})
	if action := smithy.APIError(nil); !errors.As(err, &action) || action.ErrorCode() != "InvalidAction" || action.ErrorFault() != smithy.FaultUnknown {
		t.Errorf("an action that is not there: %v", err)
	}
}

func goDelete(t *testing.T, client *rds.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := client.DeleteDBInstance(t.Context(), &rds.DeleteDBInstanceInput{DBInstanceIdentifier: &name, SkipFinalSnapshot: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
	}
	waiter := rds.NewDBInstanceDeletedWaiter(client, func(o *rds.DBInstanceDeletedWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Second, time.Second
	})
	for _, name := range names {
		if err := waiter.Wait(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: &name}, patience.For(time.Minute)); err != nil {
			t.Error(err)
		}
	}
}
