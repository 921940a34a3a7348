package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

const (
	// pieceSize is the length of the pieces in which an object is sent, in bytes. With MaxParts of
	// them an object has at most 80 GiB.
	pieceSize = 8 << 20
	// atOnce is how many pieces of an object are on their way at the same time.
	atOnce = 1
	// abortTimeout is how long an upload that cannot go on is aborted.
	abortTimeout = 10 * time.Second
)

// maxPieces is how many pieces are held in memory at the same time, by all stores of the process.
const maxPieces = 48

var (
	pieces = sync.Pool{New: func() any { b := make([]byte, pieceSize); return &b }}
	held   = semaphore.NewWeighted(maxPieces)
)

// Put implements Objects. What is small is sent in one request, the rest in pieces.
func (s *S3) Put(ctx context.Context, key string, body io.Reader) (Object, error) {
	return s.PutTelling(ctx, key, body, func(string) {})
}

// PutTelling does what Put does, and tells the id of the upload before it sends the first piece, if it
// sends pieces. What Put could not abort can be aborted by it later.
func (s *S3) PutTelling(ctx context.Context, key string, body io.Reader, begun func(id string)) (Object, error) {
	if err := CheckKey(key); err != nil {
		return Object{}, err
	}
	small := buffers.Get().(*[]byte)
	defer buffers.Put(small)
	n, err := readFull(body, *small)
	if errors.Is(err, io.EOF) {
		return s.putWhole(ctx, key, (*small)[:n])
	}
	if err != nil {
		return Object{}, err
	}
	if err := held.Acquire(ctx, 1+atOnce); err != nil {
		return Object{}, err
	}
	defer held.Release(1 + atOnce)
	piece := pieces.Get().(*[]byte)
	n, err = readFull(body, (*piece)[copy(*piece, *small):])
	if err == nil {
		return s.putPieces(ctx, key, piece, body, begun)
	}
	defer pieces.Put(piece)
	if !errors.Is(err, io.EOF) {
		return Object{}, err
	}
	return s.putWhole(ctx, key, (*piece)[:len(*small)+n])
}

// putWhole sends an object in one request.
func (s *S3) putWhole(ctx context.Context, key string, text []byte) (Object, error) {
	out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.at(key), Body: bytes.NewReader(text), ContentLength: aws.Int64(int64(len(text))),
	})
	if err != nil {
		return Object{}, s.kind("put", key, err)
	}
	return objectFrom(key, aws.Int64(int64(len(text))), aws.Time(time.Now()), out.ETag), nil
}

// putPieces sends an object of which the first piece was read.
func (s *S3) putPieces(ctx context.Context, key string, first *[]byte, body io.Reader, begun func(id string)) (Object, error) {
	id, err := s.Begin(ctx, key)
	if err != nil {
		pieces.Put(first)
		return Object{}, err
	}
	begun(id)
	parts, err := s.sendPieces(ctx, key, id, first, body)
	var object Object
	if err == nil {
		object, err = s.Complete(ctx, key, id, parts)
	}
	if err != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		_ = s.Abort(ending, key, id) // else Sweep does it
		return Object{}, err
	}
	object.Size = 0
	for _, part := range parts {
		object.Size += part.Size
	}
	return object, nil
}

// sendPieces sends one piece while it reads the next.
func (s *S3) sendPieces(ctx context.Context, key, id string, piece *[]byte, body io.Reader) ([]Part, error) {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var parts []*Part
	n, err := pieceSize, error(nil)
	for n > 0 && (err == nil || errors.Is(err, io.EOF)) && sending.Err() == nil {
		part := &Part{Number: len(parts) + 1, Size: int64(n)}
		parts = append(parts, part)
		sent := piece
		group.Go(func() (err error) {
			defer pieces.Put(sent)
			part.ETag, err = s.send(sending, key, id, part.Number, (*sent)[:part.Size])
			return err
		})
		piece = pieces.Get().(*[]byte)
		switch {
		case err != nil:
			n = 0
		case len(parts) == MaxParts:
			err = fmt.Errorf("%w: %.80q has more than %d bytes", ErrFull, key, int64(MaxParts)*pieceSize)
		default:
			n, err = readFull(body, *piece)
		}
	}
	pieces.Put(piece)
	if sendErr := group.Wait(); sendErr != nil {
		return nil, sendErr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	all := make([]Part, len(parts))
	for i, part := range parts {
		all[i] = *part
	}
	return all, nil
}

// send sends one part.
func (s *S3) send(ctx context.Context, key, id string, number int, text []byte) (etag string, err error) {
	out, err := s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &s.bucket, Key: s.at(key), UploadId: &id, PartNumber: aws.Int32(int32(number)),
		Body: bytes.NewReader(text), ContentLength: aws.Int64(int64(len(text))),
	})
	if err != nil {
		return "", s.kind("put a part of", key, err)
	}
	return strings.Trim(aws.ToString(out.ETag), `"`), nil
}

// checkID refuses what servers that keep files could take for a path.
func checkID(id string) error {
	if strings.Trim(id, ".") == "" || strings.ContainsAny(id, "/\\\x00") {
		return fmt.Errorf("%w: no upload has the id %.80q", ErrNotFound, id)
	}
	return nil
}

// Begin implements Uploads.
func (s *S3) Begin(ctx context.Context, key string) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	out, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: s.at(key)})
	if err != nil {
		return "", s.kind("put", key, err)
	}
	return aws.ToString(out.UploadId), nil
}

// Part implements Uploads. A part of at most pieceSize is sent again if that fails. A longer one is
// not kept, so its caller has to send it again.
func (s *S3) Part(ctx context.Context, key, id string, number int, body Body) (Part, error) {
	if number < 1 || number > MaxParts {
		return Part{}, fmt.Errorf("%w: %d is not from 1 to %d", ErrPart, number, MaxParts)
	}
	if err := checkID(id); err != nil {
		return Part{}, err
	}
	part := Part{Number: number, Size: body.Length}
	if body.Length > pieceSize {
		return s.stream(ctx, key, id, part, body)
	}
	if err := held.Acquire(ctx, 1); err != nil {
		return Part{}, err
	}
	defer held.Release(1)
	piece := pieces.Get().(*[]byte)
	defer pieces.Put(piece)
	n, err := readFull(body, *piece)
	switch {
	case err == nil && (body.Length < 0 || body.Length == int64(n)):
		// It may have exactly this length: more of it would be too much.
		var more int
		if more, err = readFull(body, make([]byte, 1)); more > 0 {
			err = fmt.Errorf("%w: a part of unknown length has more than %d bytes", ErrPart, pieceSize)
		}
	case err == nil:
		err = fmt.Errorf("%w: part %d is longer than it said", ErrPart, number)
	}
	if !errors.Is(err, io.EOF) {
		return Part{}, err
	}
	part.Size = int64(n)
	part.ETag, err = s.send(ctx, key, id, number, (*piece)[:n])
	return part, err
}

// stream sends a part as it comes.
func (s *S3) stream(ctx context.Context, key, id string, part Part, body Body) (Part, error) {
	reader := &failing{Reader: body}
	out, err := s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &s.bucket, Key: s.at(key), UploadId: &id, PartNumber: aws.Int32(int32(part.Number)),
		Body: reader, ContentLength: &part.Size,
	}, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
	if failed := reader.failed.Load(); failed != nil {
		return Part{}, *failed
	}
	if err != nil {
		return Part{}, s.kind("put a part of", key, err)
	}
	part.ETag = strings.Trim(aws.ToString(out.ETag), `"`)
	return part, nil
}

// failing keeps the error with which a body ended.
type failing struct {
	io.Reader
	failed atomic.Pointer[error]
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.failed.Store(&err)
	}
	return n, err
}

// Complete implements Uploads.
func (s *S3) Complete(ctx context.Context, key, id string, parts []Part) (Object, error) {
	if err := errors.Join(CheckKey(key), checkID(id), checkParts(parts)); err != nil {
		return Object{}, err
	}
	completed := make([]types.CompletedPart, len(parts))
	for i, part := range parts {
		completed[i] = types.CompletedPart{PartNumber: aws.Int32(int32(part.Number)), ETag: aws.String(`"` + part.ETag + `"`)}
	}
	out, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: s.at(key), UploadId: &id, MultipartUpload: &types.CompletedMultipartUpload{Parts: completed},
	})
	if err != nil {
		return Object{}, s.kind("put", key, err)
	}
	object, err := s.Head(ctx, key)
	if err != nil {
		// It is there. What is not known is its size.
		return objectFrom(key, nil, aws.Time(time.Now()), out.ETag), nil //nolint:nilerr // see above
	}
	return object, nil
}

// Abort implements Uploads.
func (s *S3) Abort(ctx context.Context, key, id string) error {
	if err := errors.Join(CheckKey(key), checkID(id)); err != nil {
		return err
	}
	_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: s.at(key), UploadId: &id})
	if err != nil {
		return s.kind("abort the upload of", key, err)
	}
	return nil
}

// Sweep implements Uploads.
func (s *S3) Sweep(ctx context.Context, before time.Time) error {
	in := &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &s.prefix}
	for {
		out, err := s.client.ListMultipartUploads(ctx, in)
		if err != nil {
			return s.kind("list the uploads of", "", err)
		}
		for _, u := range out.Uploads {
			key, ours := strings.CutPrefix(aws.ToString(u.Key), s.prefix)
			if !ours || u.Initiated == nil || !u.Initiated.Before(before) {
				continue
			}
			if err := s.Abort(ctx, key, aws.ToString(u.UploadId)); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
}
