package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3Config says where a bucket is. The bucket must be there.
type S3Config struct {
	// Endpoint is the URL of the server, https://host:port, or "" for AWS.
	Endpoint string
	// Region is "us-east-1" if it is "".
	Region string
	Bucket string
	// Prefix is "", or ends in a slash. Nothing outside of it is touched.
	Prefix string
	// CA has the certificates, as PEM, that sign the server's. "": the system's.
	CA string
	// AccessKey and Secret log in.
	AccessKey, Secret string
	// Timeout is how long the server may take for an answer to begin; 0: 30 s.
	Timeout time.Duration
}

const (
	usualTimeout = 30 * time.Second
	dialTimeout  = 10 * time.Second
	idleTimeout  = 90 * time.Second
	// attempts is how often one request is sent in all.
	attempts = 4
	maxWait  = 5 * time.Second
	// connections is how many stay open to the server.
	connections = 64
)

// S3 is a store in a bucket. All of them together hold at most maxPieces pieces in memory.
type S3 struct {
	client         *s3.Client
	bucket, prefix string
	transport      *http.Transport
}

var _ Store = (*S3)(nil)

// OpenS3 returns the store. It connects to nothing yet: whoever wants to know reads the marker.
func OpenS3(c S3Config) (*S3, error) {
	if c.Bucket == "" || c.Prefix != "" && !strings.HasSuffix(c.Prefix, "/") {
		return nil, errors.New("a repository in S3 needs a bucket, and its prefix must end in a slash")
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return nil, fmt.Errorf("the endpoint %q is no URL of a server, like https://s3.example.com", c.Endpoint)
		}
	}
	roots, err := authorities(c.CA)
	if err != nil {
		return nil, err
	}
	wait := c.Timeout
	if wait == 0 {
		wait = usualTimeout
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: wait,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConns:          connections,
		MaxIdleConnsPerHost:   connections,
		WriteBufferSize:       copySize,
		ReadBufferSize:        copySize,
	}
	options := s3.Options{
		Region:       c.Region,
		UsePathStyle: true,
		// Where a server sends us is not where its operator did: it may be a service inside of the home.
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.Secret, Source: "repository"}, nil
		}),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = attempts, maxWait }),
		// Servers other than AWS know no checksums in trailers. What is sent is signed with its hash.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if options.Region == "" {
		options.Region = "us-east-1"
	}
	if c.Endpoint != "" {
		options.BaseEndpoint = &c.Endpoint
	}
	return &S3{client: s3.New(options), bucket: c.Bucket, prefix: c.Prefix, transport: transport}, nil
}

// Close closes connections that nobody uses. The store is good for more requests, and a body that is
// being read goes on.
func (s *S3) Close() { s.transport.CloseIdleConnections() }

// authorities returns the certificates that are trusted; nil: those of the system.
func authorities(pem string) (*x509.CertPool, error) {
	if pem == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		return nil, errors.New("the authority of the S3 server is no certificate in PEM")
	}
	return pool, nil
}

// at returns the key in the bucket.
func (s *S3) at(key string) *string { return aws.String(s.prefix + key) }

// Get implements Objects.
func (s *S3) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Object, error) {
	if CheckKey(key) != nil {
		return nil, Object{}, fmt.Errorf("%w: %.80q", ErrNotFound, key)
	}
	if length == 0 {
		object, err := s.Head(ctx, key)
		return io.NopCloser(strings.NewReader("")), object, err
	}
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: s.at(key)}
	switch {
	case length > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := s.client.GetObject(ctx, in)
	if codeOf(err) == "InvalidRange" {
		object, err := s.Head(ctx, key)
		return io.NopCloser(strings.NewReader("")), object, err
	}
	if err != nil {
		return nil, Object{}, s.readKind("get", key, err)
	}
	object := objectFrom(key, out.ContentLength, out.LastModified, out.ETag)
	if total, ok := totalOf(out.ContentRange); ok {
		object.Size = total
	}
	return away{out.Body}, object, nil
}

// totalOf returns the size of the whole object in a Content-Range.
func totalOf(text *string) (total int64, ok bool) {
	_, size, ok := strings.Cut(aws.ToString(text), "/")
	if !ok {
		return 0, false
	}
	n, err := fmt.Sscan(size, &total)
	return total, n == 1 && err == nil
}

// away says that the server is away when a body cannot be read to its end.
type away struct{ io.ReadCloser }

func (a away) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrAway, err)
	}
	return n, err
}

// Head implements Objects.
func (s *S3) Head(ctx context.Context, key string) (Object, error) {
	if CheckKey(key) != nil {
		return Object{}, fmt.Errorf("%w: %.80q", ErrNotFound, key)
	}
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.at(key)})
	if err != nil {
		return Object{}, s.readKind("look at", key, err)
	}
	return objectFrom(key, out.ContentLength, out.LastModified, out.ETag), nil
}

func objectFrom(key string, size *int64, modified *time.Time, etag *string) Object {
	return Object{Key: key, Size: aws.ToInt64(size), Modified: aws.ToTime(modified), ETag: strings.Trim(aws.ToString(etag), `"`)}
}

// List implements Objects.
func (s *S3) List(ctx context.Context, query Query) (Page, error) {
	if checkText(query.Prefix) != nil {
		return Page{}, nil //nolint:nilerr // no key begins like this
	}
	most := min(max(query.Max, 1), MaxList)
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.at(query.Prefix), MaxKeys: aws.Int32(int32(most))}
	if query.Fold {
		in.Delimiter = aws.String("/")
	}
	if query.After != "" {
		in.StartAfter = s.at(query.After)
		if query.Fold && strings.HasSuffix(query.After, "/") {
			// What was folded was listed as a whole.
			in.StartAfter = s.at(query.After + "\U0010ffff")
		}
	}
	out, err := s.client.ListObjectsV2(ctx, in)
	if err != nil {
		return Page{}, s.readKind("list", query.Prefix, err)
	}
	var page Page
	last := ""
	for _, o := range out.Contents {
		key := strings.TrimPrefix(aws.ToString(o.Key), s.prefix)
		last = max(last, key)
		if CheckKey(key) == nil { // else somebody else made it
			page.Objects = append(page.Objects, objectFrom(key, o.Size, o.LastModified, o.ETag))
		}
	}
	for _, p := range out.CommonPrefixes {
		prefix := strings.TrimPrefix(aws.ToString(p.Prefix), s.prefix)
		last = max(last, prefix)
		if prefix > query.After && CheckKey(strings.TrimSuffix(prefix, "/")) == nil {
			page.Prefixes = append(page.Prefixes, prefix)
		}
	}
	if aws.ToBool(out.IsTruncated) {
		page.Next = last
	}
	return page, nil
}

// Delete implements Objects.
func (s *S3) Delete(ctx context.Context, keys ...string) error {
	if err := checkKeys(keys); err != nil {
		return err
	}
	for len(keys) > 0 {
		n := min(len(keys), MaxList)
		objects := make([]types.ObjectIdentifier, n)
		for i, key := range keys[:n] {
			objects[i].Key = s.at(key)
		}
		keys = keys[n:]
		out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &s.bucket, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
		})
		if err != nil {
			return s.kind("delete", aws.ToString(objects[0].Key), err)
		}
		for _, e := range out.Errors {
			if code := aws.ToString(e.Code); code != "NoSuchKey" {
				return fmt.Errorf("delete %.80q: %w: %s: %s", aws.ToString(e.Key), kindOfCode(code, 0), code, aws.ToString(e.Message))
			}
		}
	}
	return nil
}
