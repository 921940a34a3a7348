package sns

import "testing"

func TestPlainARN(t *testing.T) {
	for _, test := range [][2]string{
		{"arn:aws:sns:us-west-2:1:My-Topic", "arn:aws:sns:us-west-2:1:My-Topic"},
		{"arn:aws-cn:sns:us-west-2:1:My-Topic", "arn:aws:sns:us-west-2:1:My-Topic"},
		{"arn:aws-cn:sns:us-west-2:1:My-Topic:an-id", "arn:aws:sns:us-west-2:1:My-Topic"},
		{" db ", "db"},
		{"", ""},
	} {
		if got := plainARN(test[0]); got != test[1] {
			t.Errorf("%q: %q, want %q", test[0], got, test[1])
		}
	}
}
