package result

import "time"

// Mark is a moment of a point that plots show: a fault, or its end.
type Mark struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}
