package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Confirm asks a person to type a word. It returns an error if no person is there, or if the person
// types something else.
func (o *Options) Confirm(question, word string) error {
	if !o.Screen.Terminal.In() {
		return fmt.Errorf("this cannot be undone, and nobody is here to ask: give --yes: %w", ErrUsage)
	}
	fmt.Fprint(o.Screen.Stderr, question)
	answer, err := bufio.NewReader(io.LimitReader(o.Screen.Stdin, 1024)).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read answer: %w", err)
	}
	if strings.TrimSpace(answer) != word {
		return fmt.Errorf("that is not %q: nothing was done", word)
	}
	return nil
}
