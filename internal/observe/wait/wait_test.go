package wait

import "testing"

func TestClasses(t *testing.T) {
	for text, want := range map[string]Class{
		"CPU":                       CPU,
		"IO:DataFileRead":           IO,
		"IO:BufFileWrite":           IO,
		"IO:AioIoCompletion":        IO,
		"IO:WALSync":                WAL, // until 16
		"IO:WalSync":                WAL, // from 17 on
		"IO:WALWrite":               WAL,
		"IO:WalInitWrite":           WAL,
		"LWLock:WALWrite":           WAL,
		"LWLock:WALInsert":          WAL,
		"LWLock:WALBufMapping":      WAL,
		"LWLock:BufferMapping":      LWLock,
		"LWLock:ProcArray":          LWLock,
		"Lock:transactionid":        Lock,
		"Lock:relation":             Lock,
		"IPC:SyncRep":               IPC,
		"Client:ClientRead":         Client,
		"Timeout:PgSleep":           Timeout,
		"Timeout:CommitDelay":       WAL,
		"Extension:Extension":       Other,
		"BufferPin:BufferPin":       Other,
		"InjectionPoint:whatever":   Other,
		"Extension:HowdahSomething": Other,
	} {
		if got := Parse(text).Class(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
		if got := Parse(text).String(); got != text {
			t.Errorf("%s is written %s", text, got)
		}
	}
}

func TestWhatAnEventSays(t *testing.T) {
	says := map[string]func(Event) bool{
		"reads": Event.Reads, "writes": Event.Writes, "temporary": Event.Temporary, "replication": Event.Replication, "row": Event.Row,
	}
	for text, want := range map[string]string{
		"IO:DataFileRead":      "reads",
		"IO:AioIoCompletion":   "reads",
		"IPC:BufferIO":         "reads", // until 16
		"IPC:BufferIo":         "reads", // from 17 on
		"IO:DataFileExtend":    "writes",
		"IO:DataFileWrite":     "writes",
		"IO:BufFileRead":       "temporary",
		"IO:BuffileRead":       "temporary", // from 17 on
		"IPC:SyncRep":          "replication",
		"Lock:transactionid":   "row",
		"Lock:tuple":           "row",
		"Lock:relation":        "",
		"LWLock:BufferIO":      "",
		"IO:WALSync":           "",
		"CPU":                  "",
		"IPC:MessageQueueRecv": "",
	} {
		for name, says := range says {
			if got := says(Parse(text)); got != (name == want) {
				t.Errorf("%s says %s: %t", text, name, got)
			}
		}
	}
}

func TestWhatWaitsForThePlaceOfItsWAL(t *testing.T) {
	for text, want := range map[string]bool{"LWLock:WALInsert": true, "LWLock:WALBufMapping": true, "LWLock:WALWrite": false, "IO:WALSync": false, "IO:WALInsert": false, "CPU": false} {
		if got := Parse(text).Inserts(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestWhatHasNothingToDoDoesNotCount(t *testing.T) {
	for text, want := range map[string]bool{"Activity:CheckpointerMain": false, "CPU": true, "IO:DataFileRead": true} {
		if got := Parse(text).Counts(); got != want {
			t.Errorf("%s counts: %t", text, got)
		}
	}
}

func TestEveryClassHasAColumn(t *testing.T) {
	seen := map[string]bool{}
	for _, class := range Classes {
		if column := class.Column(); column == "aas." || seen[column] {
			t.Errorf("the column of %q is %q", class, column)
		} else {
			seen[column] = true
		}
	}
}
