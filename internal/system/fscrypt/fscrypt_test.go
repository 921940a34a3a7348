package fscrypt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/testkit/loopdisk"
)

const secretName, secretText = "a-name-that-tells-much", "the text that nobody shall find"

func TestWhatIsOnTheDiskIsNotWhatWasWritten(t *testing.T) {
	disk := loopdisk.New(t, "32", "-O", "encrypt")
	open, closed := filepath.Join(disk.Dir, "open"), filepath.Join(disk.Dir, "closed")
	for _, dir := range []string{open, closed} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	key := bytes.Repeat([]byte{7}, KeySize)
	id := add(t, disk.Dir, key)
	if err := errors.Join(Encrypt(closed, id), Encrypt(closed, id)); err != nil {
		t.Fatal(err)
	}
	if is, of, err := Of(closed); err != nil || !of || is != id {
		t.Fatalf("encrypted with %s, %v, %v; want %s", is, of, err, id)
	}
	if _, of, err := Of(open); err != nil || of {
		t.Errorf("a directory that nobody encrypted is: %v, %v", of, err)
	}
	write(t, filepath.Join(open, "plain-name"), "plain text, to see that it can be found")
	write(t, filepath.Join(closed, secretName), secretText)

	remove(t, disk.Dir, id)
	if locked, err := Locked(closed); err != nil || !locked {
		t.Errorf("locked without its key: %v, %v", locked, err)
	}
	entries, err := os.ReadDir(closed)
	if err != nil || len(entries) != 1 || entries[0].Name() == secretName {
		t.Errorf("names without the key: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(closed, secretName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file without the key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(closed, "another"), nil, 0o600); !errors.Is(err, unix.ENOKEY) {
		t.Errorf("a file is made without the key: %v", err)
	}
	unix.Sync()
	image, err := os.ReadFile(disk.Image)
	if err != nil {
		t.Fatal(err)
	}
	for text, there := range map[string]bool{"plain-name": true, "plain text": true, secretName: false, secretText: false, string(key): false} {
		if bytes.Contains(image, []byte(text)) != there {
			t.Errorf("%q in the image: want %v", text, there)
		}
	}

	disk.Unmount() // as when the host goes down
	disk.Mount(t)
	if state, err := KeyState(disk.Dir, id); err != nil || state != Absent {
		t.Errorf("the key outlived the mount: %v, %v", state, err)
	}
	add(t, disk.Dir, key)
	if text, err := os.ReadFile(filepath.Join(closed, secretName)); err != nil || string(text) != secretText {
		t.Errorf("with the key again: %q, %v", text, err)
	}
	if locked, err := Locked(closed); err != nil || locked {
		t.Errorf("locked with its key: %v, %v", locked, err)
	}
	remove(t, disk.Dir, id)
	if err := os.RemoveAll(closed); err != nil {
		t.Errorf("delete without the key: %v", err)
	}
}

// A directory that was filled before, or has another key, is not taken for encrypted.
func TestOnlyAnEmptyDirectoryIsEncrypted(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	one, other := add(t, disk.Dir, bytes.Repeat([]byte{1}, KeySize)), add(t, disk.Dir, bytes.Repeat([]byte{2}, KeySize))
	dir, full := filepath.Join(disk.Dir, "dir"), filepath.Join(disk.Dir, "full")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(full, 0o700), Encrypt(dir, one)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(full, "x"), "x")
	if err := Encrypt(full, one); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("a full directory: %v", err)
	}
	if err := Encrypt(dir, other); !errors.Is(err, ErrForeign) {
		t.Errorf("with a second key: %v", err)
	}
	link := filepath.Join(disk.Dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Of(link); err == nil {
		t.Error("a link was followed")
	}
	if _, err := AddKey(disk.Dir, []byte("short")); !errors.Is(err, errKeySize) {
		t.Errorf("a short key: %v", err)
	}
}

// A file that is open when the key is removed keeps the key in the kernel, and RemoveKey says so.
func TestAnOpenFileKeepsTheKey(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	id := add(t, disk.Dir, bytes.Repeat([]byte{3}, KeySize))
	dir := filepath.Join(disk.Dir, "dir")
	if err := errors.Join(os.Mkdir(dir, 0o700), Encrypt(dir, id)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if busy, err := RemoveKey(disk.Dir, id); err != nil || !busy {
		t.Errorf("removed while a file is open: busy %v, %v", busy, err)
	}
	if state, err := KeyState(disk.Dir, id); err != nil || state != Fading {
		t.Errorf("%v, %v", state, err)
	}
	file.Close()
	remove(t, disk.Dir, id)
	remove(t, disk.Dir, id) // once more changes nothing
	if state, err := KeyState(disk.Dir, id); err != nil || state != Absent {
		t.Errorf("%v, %v", state, err)
	}
}

func TestTry(t *testing.T) {
	for name, c := range map[string]struct {
		options []string
		want    error
	}{
		"encrypt":    {[]string{"-O", "encrypt"}, nil},
		"no encrypt": {nil, ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			disk := loopdisk.New(t, "16", c.options...)
			place := filepath.Join(disk.Dir, "try")
			if err := os.MkdirAll(filepath.Join(place, "left"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Try(place); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if _, err := os.Lstat(place); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the place is left: %v", err)
			}
		})
	}
	if err := Try(filepath.Join(memory(t), "try")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("in memory: %v", err)
	}
	if _, of, err := Of(memory(t)); of || err != nil {
		t.Errorf("in memory: %v, %v", of, err)
	}
}

func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		t.Skip("there is no file system in memory")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestDiskEncrypted(t *testing.T) {
	for name, c := range map[string]struct {
		devices string // number and what is in its directory, below one another
		want    bool
	}{
		"plain":                    {"8:0 disk", false},
		"dm-crypt":                 {"254:0 dm=CRYPT-LUKS2-1234-root", true},
		"a volume on dm-crypt":     {"254:1 dm=LVM-abc slaves=254:0; 254:0 dm=CRYPT-LUKS2-1234-root", true},
		"three deep":               {"254:2 dm=LVM-x slaves=9:0; 9:0 disk slaves=254:0,254:1; 254:0 dm=CRYPT-a; 254:1 dm=CRYPT-PLAIN-b", true},
		"one disk of two":          {"9:0 disk slaves=254:0,8:0; 254:0 dm=CRYPT-a; 8:0 disk", false},
		"a volume on plain disks":  {"254:1 dm=LVM-abc slaves=8:0; 8:0 disk", false},
		"checked, not encrypted":   {"254:0 dm=CRYPT-VERITY-1234-root", false},
		"a part of a plain disk":   {"8:1 partof=8:0; 8:0 disk", false},
		"a part of a RAID of them": {"9:1 partof=9:0; 9:0 disk slaves=254:0; 254:0 dm=CRYPT-a", true},
		"round in circles":         {"254:0 dm=LVM-a slaves=254:1; 254:1 dm=LVM-b slaves=254:0", false},
		"not shown":                {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			sys := t.TempDir()
			first := ""
			for device := range strings.SplitSeq(c.devices, "; ") {
				words := strings.Fields(device)
				if len(words) > 0 {
					fakeDevice(t, sys, words[0], words[1:])
					if first == "" {
						first = words[0]
					}
				}
			}
			if got := (Machine{Sys: sys}).encrypted(first, 0); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	if got, err := (Machine{}).DiskEncrypted(memory(t)); got || err != nil {
		t.Errorf("in memory: %v, %v", got, err)
	}
}

// fakeDevice shows a device as the kernel does.
func fakeDevice(t *testing.T, sys, number string, words []string) {
	t.Helper()
	dir := filepath.Join(sys, "devices", number)
	for _, word := range words {
		if above, ok := strings.CutPrefix(word, "partof="); ok {
			dir = filepath.Join(sys, "devices", above, number)
			write(t, filepath.Join(dir, "partition"), "1\n")
		}
		if uuid, ok := strings.CutPrefix(word, "dm="); ok {
			write(t, filepath.Join(dir, "dm/uuid"), uuid+"\n")
		}
		if slaves, ok := strings.CutPrefix(word, "slaves="); ok {
			for slave := range strings.SplitSeq(slaves, ",") {
				write(t, filepath.Join(dir, "slaves", slave, "dev"), slave+"\n")
			}
		}
	}
	write(t, filepath.Join(dir, "dev"), number+"\n")
	shown := filepath.Join(sys, "dev/block", number)
	if err := errors.Join(os.MkdirAll(filepath.Dir(shown), 0o755), os.Symlink(dir, shown)); err != nil {
		t.Fatal(err)
	}
}

// add gives a key to the file system, and checks its name against Identify.
func add(t *testing.T, dir string, key []byte) ID {
	t.Helper()
	want, err := Identify(key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := AddKey(dir, key)
	if err != nil || id != want {
		t.Fatalf("the kernel names it %s (%v), and we %s", id, err, want)
	}
	if state, err := KeyState(dir, id); err != nil || state != Present {
		t.Fatalf("after it was added: %v, %v", state, err)
	}
	return id
}

func remove(t *testing.T, dir string, id ID) {
	t.Helper()
	if busy, err := RemoveKey(dir, id); err != nil || busy {
		t.Errorf("remove the key: busy %v, %v", busy, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
