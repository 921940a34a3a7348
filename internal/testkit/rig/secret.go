package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
)

// CreateManaged is Create for an instance whose password nobody chose. It returns the ARN of the
// secret.
func (r *Rig) CreateManaged(ctx context.Context, name string, multiAZ bool) (arn string, err error) {
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: new("postgres"), DBInstanceClass: new("db.t3.micro"),
		AllocatedStorage: new(int32(20)), MasterUsername: new("app"), ManageMasterUserPassword: new(true), MultiAZ: &multiAZ, BackupRetentionPeriod: new(int32(0)),
	}
	var out rds.CreateDBInstanceResult
	if err := r.Call(ctx, "CreateDBInstance", in, &out); err != nil {
		return "", err
	}
	return *out.DBInstance.MasterUserSecret.SecretArn, r.WaitStatus(ctx, name, "available", time.Minute)
}

// CallSecrets calls an action of Secrets Manager.
func (r *Rig) CallSecrets(ctx context.Context, action string, in map[string]any) (out map[string]any, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", action, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.Home.Listen+"/", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", action, err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "secretsmanager."+action)
	creds := sigv4.Credentials{AccessKeyID: r.key.AccessKey, SecretAccessKey: r.key.Secret}
	sigv4.Sign(request, body, creds, r.Home.Region, "secretsmanager", time.Now())
	answer, err := r.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", action, err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("call %s: %w", action, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, &wire.Error{Code: fmt.Sprint(out["__type"]), Message: fmt.Sprint(out["message"]), Status: answer.StatusCode}
	}
	return out, nil
}

// SecretPassword returns the password of a secret's stage.
func (r *Rig) SecretPassword(ctx context.Context, arn, stage string) (string, error) {
	out, err := r.CallSecrets(ctx, "GetSecretValue", map[string]any{"SecretId": arn, "VersionStage": stage})
	if err != nil {
		return "", err
	}
	var value struct{ Password string }
	text, _ := out["SecretString"].(string)
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return "", fmt.Errorf("read the value of %s: %w", arn, err)
	}
	return value.Password, nil
}

// Login returns nil if the master user can log in with a password.
func Login(ctx context.Context, config *pgx.ConnConfig, password string) error {
	config = config.Copy()
	config.Password = password
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}
