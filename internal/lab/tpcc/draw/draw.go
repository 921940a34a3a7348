// Package draw draws what TPC-C asks to be drawn: numbers, skewed numbers, last names, permutations and
// texts. Equal seeds give equal draws. It does no I/O.
package draw

import "math/rand/v2"

// Source draws for one goroutine.
type Source struct {
	rand *rand.Rand
}

// New returns a source. Different streams of one seed are independent of each other.
func New(seed, stream uint64) *Source {
	return &Source{rand: rand.New(rand.NewPCG(seed, stream))}
}

// Between returns a number from low to high, both included. All are equally likely. It needs
// low <= high.
func (s *Source) Between(low, high int) int {
	return low + s.rand.IntN(high-low+1)
}

// Percent is true in this share of its calls.
func (s *Source) Percent(share int) bool { return s.rand.IntN(100) < share }

// Exponential returns a number from the distribution with this mean.
func (s *Source) Exponential(mean float64) float64 { return s.rand.ExpFloat64() * mean }

// NURand is the skewed draw of clause 2.1.6: a number from low to high. a is 255, 1023 or 8191, and c
// the constant of the run, from 0 to a.
func (s *Source) NURand(a, low, high, c int) int {
	return ((s.Between(0, a)|s.Between(low, high))+c)%(high-low+1) + low
}

// Permute fills all with the numbers from 1 to its length, in any order.
func (s *Source) Permute(all []int32) {
	for i := range all {
		all[i] = int32(i + 1)
	}
	s.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// alphabet has letters and digits. Two occur twice, so that six bits choose one: texts only have to
// take room, and this is many times faster than a draw for each character.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzea"

const charBits, charsOnce = 6, 10

// AppendText appends letters and digits: from low to high of them.
func (s *Source) AppendText(to []byte, low, high int) []byte {
	for left := s.Between(low, high); left > 0; left -= charsOnce {
		bits := s.rand.Uint64()
		for range min(left, charsOnce) {
			to = append(to, alphabet[bits&(1<<charBits-1)])
			bits >>= charBits
		}
	}
	return to
}

// AppendLetters appends n capital letters.
func (s *Source) AppendLetters(to []byte, n int) []byte {
	for range n {
		to = append(to, byte('A'+s.rand.IntN(26)))
	}
	return to
}

// AppendDigits appends n digits.
func (s *Source) AppendDigits(to []byte, n int) []byte {
	for range n {
		to = append(to, byte('0'+s.rand.IntN(10)))
	}
	return to
}

// AppendMarked appends from low to high letters and digits. In one of ten calls the mark is somewhere
// in them. It needs low >= len(mark).
func (s *Source) AppendMarked(to []byte, low, high int, mark string) []byte {
	begin := len(to)
	to = s.AppendText(to, low, high)
	if s.Percent(10) {
		at := s.Between(begin, len(to)-len(mark))
		copy(to[at:], mark)
	}
	return to
}

// syllables of clause 4.3.2.3.
var syllables = [10]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

// AppendLast appends the last name of a number from 0 to 999: a syllable for each of its three digits.
func AppendLast(to []byte, n int) []byte {
	to = append(to, syllables[n/100%10]...)
	to = append(to, syllables[n/10%10]...)
	return append(to, syllables[n%10]...)
}
