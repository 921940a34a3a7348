package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An upload is a directory below uploadDir, with its id as name. It has the key in the file
// keyFile, and the parts in files NUMBER-SIZE-ETAG. A part that is not whole has the name part-….
const keyFile = "key"

// idBytes is how long an id is before it is written in hexadecimal.
const idBytes = 16

// Begin implements Uploads.
func (d *Directory) Begin(ctx context.Context, key string) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	t, err := d.tree()
	if err != nil {
		return "", err
	}
	defer t.close()
	id := make([]byte, idBytes)
	_, _ = rand.Read(id) // it never fails
	name := uploadDir + "/" + hex.EncodeToString(id)
	file, err := t.create(name + "/" + keyFile)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := fill(ctx, file, strings.NewReader(key)); err != nil {
		return "", errors.Join(err, t.removeAll(name))
	}
	return hex.EncodeToString(id), nil
}

// upload is one that was begun.
type upload struct {
	tree
	name string
}

// upload finds an upload. The caller closes it.
func (d *Directory) upload(key, id string) (upload, error) {
	none := fmt.Errorf("%w: the upload %.80q of %.80q", ErrNotFound, id, key)
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != idBytes || id != strings.ToLower(id) {
		return upload{}, none
	}
	t, err := d.tree()
	if err != nil {
		return upload{}, err
	}
	u := upload{tree: t, name: uploadDir + "/" + id}
	body, _, err := t.get(u.name+"/"+keyFile, 0, MaxKey+1)
	if err != nil {
		t.close()
		return upload{}, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err == nil && string(text) != key {
		err = none
	}
	if err != nil {
		t.close()
		return upload{}, err
	}
	return u, nil
}

// Part implements Uploads. A part is not durable before the object is.
func (d *Directory) Part(ctx context.Context, key, id string, number int, body Body) (Part, error) {
	if number < 1 || number > MaxParts {
		return Part{}, fmt.Errorf("%w: %d is not from 1 to %d", ErrPart, number, MaxParts)
	}
	u, err := d.upload(key, id)
	if err != nil {
		return Part{}, err
	}
	defer u.close()
	part := Part{Number: number, ETag: rand.Text()}
	making := u.name + "/part-" + part.ETag
	file, err := u.open(making, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return Part{}, kindOf(err)
	}
	defer file.Close()
	if err = fill(ctx, file, body); err == nil {
		part, err = u.keep(file, making, part)
	}
	if err != nil {
		return Part{}, errors.Join(err, gone(u.remove(making, 0)))
	}
	return part, nil
}

// keep gives a part its name, and removes the parts that have the same number.
func (u upload) keep(file *os.File, making string, part Part) (Part, error) {
	object, err := stat(file, making)
	if err != nil {
		return Part{}, err
	}
	part.Size = object.Size
	before, err := u.parts()
	if err != nil {
		return Part{}, err
	}
	dir, err := u.dir(u.name)
	if err != nil {
		return Part{}, kindOf(err)
	}
	defer dir.Close()
	_, from := cutLast(making)
	if err := unix.Renameat(int(dir.Fd()), from, int(dir.Fd()), partName(part)); err != nil {
		return Part{}, kindOf(err)
	}
	if old, ok := before[part.Number]; ok {
		err = gone(u.remove(u.name+"/"+partName(old), 0))
	}
	return part, err
}

func partName(p Part) string { return fmt.Sprintf("%d-%d-%s", p.Number, p.Size, p.ETag) }

// parts returns the parts that were sent, by number.
func (u upload) parts() (map[int]Part, error) {
	dir, err := u.dir(u.name)
	if err != nil {
		return nil, kindOf(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, kindOf(err)
	}
	parts := map[int]Part{}
	for _, name := range names {
		fields := strings.SplitN(name, "-", 3)
		if len(fields) != 3 {
			continue
		}
		number, numberErr := strconv.Atoi(fields[0])
		size, sizeErr := strconv.ParseInt(fields[1], 10, 64)
		if numberErr == nil && sizeErr == nil {
			parts[number] = Part{Number: number, Size: size, ETag: fields[2]}
		}
	}
	return parts, nil
}

// Complete implements Uploads. The first part becomes the object: only the others are copied, which
// some file systems do without copying.
func (d *Directory) Complete(ctx context.Context, key, id string, parts []Part) (Object, error) {
	if err := errors.Join(CheckKey(key), checkParts(parts)); err != nil {
		return Object{}, err
	}
	u, err := d.upload(key, id)
	if err != nil {
		return Object{}, err
	}
	defer u.close()
	sent, err := u.parts()
	if err != nil {
		return Object{}, err
	}
	for i, part := range parts {
		have, ok := sent[part.Number]
		if !ok || have.ETag != part.ETag {
			return Object{}, fmt.Errorf("%w: part %d", ErrPart, part.Number)
		}
		parts[i].Size = have.Size
	}
	object, err := u.join(ctx, key, parts)
	if err != nil {
		return Object{}, err
	}
	// What is left of it is removed by Sweep at the latest.
	_ = u.removeAll(u.name)
	return object, nil
}

// join makes the object. If it cannot, the parts are as they were.
func (u upload) join(ctx context.Context, key string, parts []Part) (Object, error) {
	name := u.name + "/" + partName(parts[0])
	file, err := u.open(name, unix.O_RDWR, 0)
	if err != nil {
		return Object{}, kindOf(err)
	}
	defer file.Close()
	// Whoever tried before us and was killed has perhaps appended something.
	err = file.Truncate(parts[0].Size)
	if err == nil {
		_, err = file.Seek(parts[0].Size, io.SeekStart)
	}
	for _, part := range parts[1:] {
		if err = errors.Join(err, ctx.Err()); err != nil {
			break
		}
		err = u.append(file, part)
	}
	var object Object
	if err == nil {
		object, err = u.place(file, name, key)
	}
	if err != nil {
		return Object{}, errors.Join(kindOf(err), file.Truncate(parts[0].Size))
	}
	return object, nil
}

// append copies a part to the end of the file, inside the kernel.
func (u upload) append(file *os.File, part Part) error {
	from, err := u.open(u.name+"/"+partName(part), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	n, err := io.Copy(file, from)
	if err == nil && n != part.Size {
		err = fmt.Errorf("%w: part %d has %d bytes, and had %d", ErrPart, part.Number, n, part.Size)
	}
	return err
}

// Abort implements Uploads.
func (d *Directory) Abort(_ context.Context, key, id string) error {
	u, err := d.upload(key, id)
	if err != nil {
		return err
	}
	defer u.close()
	return kindOf(u.removeAll(u.name))
}

// Sweep implements Uploads.
func (d *Directory) Sweep(ctx context.Context, before time.Time) error {
	t, err := d.tree()
	if err != nil {
		return err
	}
	defer t.close()
	err = t.each(putDir, func(name string, modified time.Time) error {
		if !modified.Before(before) {
			return nil
		}
		return gone(t.remove(name, 0))
	})
	return errors.Join(err, t.each(uploadDir, func(name string, newest time.Time) error {
		err := t.each(name, func(_ string, modified time.Time) error {
			if modified.After(newest) {
				newest = modified
			}
			return ctx.Err()
		})
		if err != nil || !newest.Before(before) {
			return err
		}
		return gone(t.removeAll(name))
	}))
}

// each calls f for all that is in a directory, if there is one.
func (t tree) each(name string, f func(name string, modified time.Time) error) error {
	dir, err := t.dir(name)
	if err != nil {
		return gone(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, inside := range names {
		var s unix.Stat_t
		if statErr := unix.Fstatat(int(dir.Fd()), inside, &s, unix.AT_SYMLINK_NOFOLLOW); statErr != nil {
			err = errors.Join(err, gone(statErr))
			continue
		}
		err = errors.Join(err, f(name+"/"+inside, modifiedOf(&s)))
	}
	return kindOf(err)
}
