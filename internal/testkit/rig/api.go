package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/ec2"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/shape"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/certs"
)

// Password of every master user in a rig.
const Password = "rig-password-1"

// Call calls an action of the API. Every answer passes the strict shape checker.
func (r *Rig) Call(ctx context.Context, action string, in, out any) error {
	return r.call(ctx, "rds", rds.Service.Version, action, in, out)
}

// CallEC2 is Call for security groups.
func (r *Rig) CallEC2(ctx context.Context, action string, in, out any) error {
	return r.call(ctx, "ec2", ec2.Service.Version, action, in, out)
}

func (r *Rig) call(ctx context.Context, service, version, action string, in, out any) error {
	body := []byte(wire.EncodeForm(action, version, in).Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.Home.Listen+"/", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call %s: %w", action, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	creds := sigv4.Credentials{AccessKeyID: r.key.AccessKey, SecretAccessKey: r.key.Secret}
	sigv4.Sign(request, body, creds, r.Home.Region, service, time.Now())
	answer, err := r.http.Do(request)
	if err != nil {
		return fmt.Errorf("call %s: %w", action, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("call %s: %w", action, err)
	}
	if answer.StatusCode == http.StatusOK {
		if err := shape.Check(action, text); err != nil {
			return fmt.Errorf("call %s: %w", action, err)
		}
	}
	return wire.DecodeResult(text, action, out)
}

// Instance describes one DB instance.
func (r *Rig) Instance(ctx context.Context, name string) (rds.DBInstance, error) {
	var out rds.DBInstanceMessage
	err := r.Call(ctx, "DescribeDBInstances", &rds.DescribeDBInstancesMessage{DBInstanceIdentifier: &name}, &out)
	if err != nil {
		return rds.DBInstance{}, err
	}
	return out.DBInstances[0], nil
}

// Tag gives an instance a tag, which it may have with another value.
func (r *Rig) Tag(ctx context.Context, name, key, value string) error {
	i, err := r.Instance(ctx, name)
	if err != nil {
		return err
	}
	in := &rds.AddTagsToResourceMessage{ResourceName: i.DBInstanceArn, Tags: []rds.Tag{{Key: &key, Value: &value}}}
	return r.Call(ctx, "AddTagsToResource", in, nil)
}

// WaitStatus waits for an instance to have a status.
func (r *Rig) WaitStatus(ctx context.Context, name, status string, within time.Duration) error {
	return r.Wait(within, func() error {
		i, err := r.Instance(ctx, name)
		if err == nil && *i.DBInstanceStatus != status {
			err = fmt.Errorf("%s is %s", name, *i.DBInstanceStatus)
		}
		return err
	})
}

// Create makes an instance and waits until it is available.
func (r *Rig) Create(ctx context.Context, name string, multiAZ bool) error {
	if err := r.Ask(ctx, name, multiAZ); err != nil {
		return err
	}
	return r.WaitStatus(ctx, name, "available", time.Minute)
}

// Ask asks for an instance and does not wait for it.
func (r *Rig) Ask(ctx context.Context, name string, multiAZ bool) error {
	return r.AskWith(ctx, name, func(in *rds.CreateDBInstanceMessage) { in.MultiAZ = &multiAZ })
}

// AskWith is Ask for an instance that change has altered.
func (r *Rig) AskWith(ctx context.Context, name string, change func(*rds.CreateDBInstanceMessage)) error {
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: new("postgres"), DBInstanceClass: new("db.t3.micro"),
		AllocatedStorage: new(int32(20)), MasterUsername: new("app"), MasterUserPassword: new(Password),
		BackupRetentionPeriod: new(int32(0)), // few stories are about backups
	}
	change(in)
	return r.Call(ctx, "CreateDBInstance", in, &rds.CreateDBInstanceResult{})
}

// Replica makes a read replica of an instance and waits until it is available.
func (r *Rig) Replica(ctx context.Context, name, source string, multiAZ bool) error {
	in := &rds.CreateDBInstanceReadReplicaMessage{DBInstanceIdentifier: &name, SourceDBInstanceIdentifier: &source, MultiAZ: &multiAZ}
	if err := r.Call(ctx, "CreateDBInstanceReadReplica", in, &rds.CreateDBInstanceReadReplicaResult{}); err != nil {
		return err
	}
	return r.WaitStatus(ctx, name, "available", time.Minute)
}

// Config returns a configuration for connections through the endpoint of an instance, with TLS
// verified in full.
func (r *Rig) Config(ctx context.Context, name string) (*pgx.ConnConfig, error) {
	i, err := r.Instance(ctx, name)
	if err != nil {
		return nil, err
	}
	if i.Endpoint == nil {
		return nil, fmt.Errorf("%s has no endpoint yet", name)
	}
	return r.ConfigAt(*i.Endpoint.Address, int(*i.Endpoint.Port))
}

// ConfigAt returns a configuration for connections to an address, or to a name of the home's zone.
func (r *Rig) ConfigAt(host string, port int) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig("sslmode=disable database=postgres user=app password=" + Password)
	if err != nil {
		return nil, fmt.Errorf("configure connection: %w", err)
	}
	pair, err := certs.Load(r.Home.CertDir())
	if err != nil {
		return nil, err
	}
	tls, err := pair.ClientTLS()
	if err != nil {
		return nil, err
	}
	tls.Certificates, tls.ServerName = nil, host
	config.Host, config.Port, config.TLSConfig = host, uint16(port), tls
	r.byName(config)
	return config, nil
}

// Events returns the messages about an instance in the last hour.
func (r *Rig) Events(ctx context.Context, name string) ([]string, error) {
	var out rds.EventsMessage
	in := &rds.DescribeEventsMessage{SourceIdentifier: &name, SourceType: new("db-instance")}
	if err := r.Call(ctx, "DescribeEvents", in, &out); err != nil {
		return nil, err
	}
	var all []string
	for _, e := range out.Events {
		all = append(all, *e.Message)
	}
	return all, nil
}
