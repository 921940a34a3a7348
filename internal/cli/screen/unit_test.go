package screen

import (
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	cases := map[int64]string{
		0: "0 B", 512: "512 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 200 << 30: "200 GiB",
		3 << 40: "3.0 TiB", -2048: "-2.0 KiB", 1 << 62: "4096 PiB",
	}
	for n, want := range cases {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	cases := map[time.Duration]string{
		0: "0.00 s", 310 * time.Millisecond: "0.31 s", 1500 * time.Millisecond: "1.5 s", 12 * time.Second: "12 s",
		90 * time.Second: "90 s", 200 * time.Second: "3m20s", 3 * time.Hour: "3h00m", 50 * time.Hour: "2d2h", -time.Second: "-1.0 s",
	}
	for d, want := range cases {
		if got := Span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
