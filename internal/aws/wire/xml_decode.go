package wire

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// ErrResponse means that a document is not an answer of the action asked for.
var ErrResponse = errors.New("not an answer of this action")

// DecodeResult reads the answer of an action into out, a pointer to the action's
// output structure, or nil for a void action. Unknown elements are skipped, as
// SDKs do. An error document is returned as *Error, its status being the one
// that its code stands for; anything that is not an answer is ErrResponse.
func DecodeResult(body []byte, action string, out any) error {
	a, _, err := findAction(action, out)
	if err != nil {
		return err
	}
	d := xmlDecoder{xml.NewDecoder(bytes.NewReader(body))}
	root, err := d.root()
	switch {
	case err != nil:
	case root == "ErrorResponse":
		return d.errorDocument()
	case root == "Response":
		return d.errorsDocument()
	case root != action+"Response":
		err = fmt.Errorf("element %s", root)
	case out != nil:
		err = d.result(a.Wrapper, out)
	default:
		err = d.children(func(string) error { return d.Skip() })
	}
	if err != nil {
		return fmt.Errorf("decode the answer of %s: %w: %w", action, ErrResponse, err)
	}
	return nil
}

type xmlDecoder struct{ *xml.Decoder }

func (d xmlDecoder) root() (string, error) {
	for {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local, nil
		}
	}
}

// children calls each for every child of the element just opened, and returns
// behind the element's end. each must read its child to the end.
func (d xmlDecoder) children(each func(name string) error) error {
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := each(t.Name.Local); err != nil {
				return err
			}
		}
	}
}

// text returns the text of the element just opened; elements inside are skipped.
func (d xmlDecoder) text() (string, error) {
	var b strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			if err := d.Skip(); err != nil {
				return "", err
			}
		case xml.EndElement:
			return b.String(), nil
		}
	}
}

func (d xmlDecoder) result(wrapper string, out any) error {
	v, err := structOf(out)
	if err != nil {
		return err
	}
	if wrapper == "" {
		return d.structure(v)
	}
	found := false
	err = d.children(func(name string) error {
		if name != wrapper {
			return d.Skip()
		}
		found = true
		return d.structure(v)
	})
	if err == nil && !found {
		return fmt.Errorf("no element %s", wrapper)
	}
	return err
}

func (d xmlDecoder) structure(v reflect.Value) error {
	p := planOf(v.Type())
	return d.children(func(name string) error {
		f, ok := p.byName[name]
		if !ok {
			return d.Skip()
		}
		return d.member(f, v.Field(f.index))
	})
}

func (d xmlDecoder) member(f *field, v reflect.Value) error {
	switch f.kind {
	case kindStruct:
		v.Set(reflect.New(f.inner))
		return d.structure(v.Elem())
	case kindStructs, kindStrings:
		return d.list(f, v)
	case kindMap:
		return d.entries(v)
	default:
		return d.scalar(f, v)
	}
}

func (d xmlDecoder) scalar(f *field, v reflect.Value) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	pointer := reflect.New(v.Type().Elem())
	if !parseScalar(f, pointer.Elem(), text) {
		return fmt.Errorf("element %s must be %s%s", f.Name, wanted(f), notShown(f, text))
	}
	v.Set(pointer)
	return nil
}

func (d xmlDecoder) list(f *field, v reflect.Value) error {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	return d.children(func(name string) error {
		if name != f.Element {
			return d.Skip()
		}
		element := reflect.New(f.inner).Elem()
		if f.kind == kindStructs {
			if err := d.structure(element); err != nil {
				return err
			}
		} else {
			text, err := d.text()
			if err != nil {
				return err
			}
			element.SetString(text)
		}
		v.Set(reflect.Append(v, element))
		return nil
	})
}

func (d xmlDecoder) entries(v reflect.Value) error {
	entries := map[string]string{}
	v.Set(reflect.ValueOf(entries))
	return d.children(func(name string) error {
		if name != mapElement {
			return d.Skip()
		}
		parts, err := d.texts()
		entries[parts["key"]] = parts["value"]
		return err
	})
}

// texts returns the texts of the children of the element just opened.
func (d xmlDecoder) texts() (map[string]string, error) {
	texts := map[string]string{}
	err := d.children(func(name string) error {
		text, err := d.text()
		texts[name] = text
		return err
	})
	return texts, err
}

// errorDocument reads the rest of an ErrorResponse.
func (d xmlDecoder) errorDocument() error {
	var parts map[string]string
	err := d.children(func(name string) (err error) {
		if name != "Error" {
			return d.Skip()
		}
		parts, err = d.texts()
		return err
	})
	return errorOf(parts, err)
}

// errorsDocument reads the rest of a Response: the first of EC2's Errors.
func (d xmlDecoder) errorsDocument() error {
	var parts map[string]string
	err := d.children(func(name string) error {
		if name != "Errors" {
			return d.Skip()
		}
		return d.children(func(name string) (err error) {
			if name != "Error" || parts != nil {
				return d.Skip()
			}
			parts, err = d.texts()
			return err
		})
	})
	return errorOf(parts, err)
}

// errorOf returns the error that was read, or why it could not be read.
func errorOf(parts map[string]string, err error) error {
	if err == nil && parts["Code"] == "" {
		err = errors.New("no element Code")
	}
	if err != nil {
		return fmt.Errorf("decode an error document: %w: %w", ErrResponse, err)
	}
	e := NewError(parts["Code"], "%s", parts["Message"])
	e.Hint = parts["Hint"]
	if parts["Type"] == "Receiver" && e.Status < http.StatusInternalServerError {
		e.Status = http.StatusInternalServerError
	}
	return e
}
