package look

import "testing"

func TestPlainARN(t *testing.T) {
	for _, test := range [][2]string{
		{" arn:aws:rds:us-west-2:1:db:A ", "arn:aws:rds:us-west-2:1:db:a"},
		{"ARN:x:RDS:us-west-2:1:og:a:B", "arn:aws:rds:us-west-2:1:og:a:b"},
		{"arn:aws:rds", "arn:aws:rds"},
		{"db", "db"},
		{"", ""},
	} {
		if got := PlainARN(test[0]); got != test[1] {
			t.Errorf("%q: %q, want %q", test[0], got, test[1])
		}
	}
}
