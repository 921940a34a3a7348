package pgbackrest

import "testing"

func TestNamesOfFilesInTheArchive(t *testing.T) {
	const sum = "-0123456789abcdef0123456789abcdef01234567"
	for key, want := range map[string]string{
		"archive/db-1/15-1/0000000100000000/000000010000000000000003" + sum + ".zst":   "000000010000000000000003",
		"archive/db-1/15-1/0000000A00000000/0000000A00000000000000FF" + sum:            "0000000A00000000000000FF",
		"archive/db-1/15-1/00000002.history":                                           "00000002.history",
		"archive/db-1/15-1/0000000100000000/000000010000000000000003.partial" + sum:    "",
		"archive/db-1/15-1/0000000100000000/000000010000000000000003.00000028.backup":  "",
		"archive/db-1/archive.info":                                                    "",
		"backup/db-1/20261124-160000F/pg_data/000000010000000000000003" + sum + ".zst": "",
		"": "",
	} {
		if name, ok := (Engine{}).WALOf(key); name != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", key, name, ok)
		}
	}
}
