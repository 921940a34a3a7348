package user

import (
	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/terminal"
)

func (u *User) payment(p *terminal.Payment) error {
	u.params.reset().ints(p.Warehouse).cents(p.Cents)
	if err := u.one("pay_warehouse"); err != nil {
		return err
	}
	data := append(make([]byte, 0, dataRoom), u.answer.cell(0, 0)...)
	u.params.reset().ints(p.Warehouse, p.District).cents(p.Cents)
	if err := u.one("pay_district"); err != nil {
		return err
	}
	data = append(append(data, "    "...), u.answer.cell(0, 0)...)
	customer := p.Customer
	if p.ByName {
		middle, err := u.namesake(p.CustomerWarehouse, p.CustomerDistrict, p.Last)
		if err != nil {
			return err
		}
		customer = middle
	}
	u.params.reset().ints(p.CustomerWarehouse, p.CustomerDistrict, customer, p.Warehouse, p.District).cents(p.Cents)
	if err := u.one("pay"); err != nil {
		return err
	}
	u.params.reset().ints(p.Warehouse, p.District, p.CustomerWarehouse, p.CustomerDistrict, customer).cents(p.Cents).now().text(data)
	return u.exec("put_history")
}

// dataRoom is what the text of a payment takes: two names and four spaces.
const dataRoom = 24

// namesake returns the customer in the middle of those with a name.
func (u *User) namesake(warehouse, district int, last []byte) (int, error) {
	u.params.reset().ints(warehouse, district).text(last)
	if err := u.one("namesakes"); err != nil {
		return 0, err
	}
	return u.answer.int((u.answer.rows()-1)/2, 0)
}

// delivery delivers the oldest order of each district. One that has none is skipped.
func (u *User) delivery(warehouse, carrier int) error {
	for district := 1; district <= form.Districts; district++ {
		u.params.reset().ints(warehouse, district)
		if err := u.exec("oldest"); err != nil {
			return err
		}
		if u.answer.rows() == 0 {
			continue
		}
		number, err := u.answer.int(0, 0)
		if err != nil {
			return err
		}
		if err := u.deliver(warehouse, district, number, carrier); err != nil {
			return err
		}
	}
	return nil
}

func (u *User) deliver(warehouse, district, number, carrier int) error {
	u.params.reset().ints(warehouse, district, number)
	if err := u.exec("remove"); err != nil {
		return err
	}
	u.params.ints(carrier)
	if err := u.one("send"); err != nil {
		return err
	}
	customer, err := u.answer.int(0, 0)
	if err != nil {
		return err
	}
	u.params.reset().ints(warehouse, district, number).now()
	if err := u.one("send_lines"); err != nil {
		return err
	}
	u.params.reset().ints(warehouse, district, customer).text(u.answer.cell(0, 0))
	return u.exec("credit")
}

func (u *User) orderStatus(s *terminal.OrderStatus) error {
	customer := s.Customer
	if s.ByName {
		middle, err := u.namesake(s.Warehouse, s.District, s.Last)
		if err != nil {
			return err
		}
		customer = middle
	} else {
		u.params.reset().ints(s.Warehouse, s.District, s.Customer)
		if err := u.one("customer"); err != nil {
			return err
		}
	}
	u.params.reset().ints(s.Warehouse, s.District, customer)
	if err := u.one("latest"); err != nil {
		return err
	}
	number, err := u.answer.int(0, 0)
	if err != nil {
		return err
	}
	u.params.reset().ints(s.Warehouse, s.District, number)
	return u.one("lines")
}

func (u *User) stockLevel(warehouse, district, threshold int) error {
	u.params.reset().ints(warehouse, district)
	if err := u.one("next_number"); err != nil {
		return err
	}
	next, err := u.answer.int(0, 0)
	if err != nil {
		return err
	}
	u.params.ints(next, threshold)
	return u.one("low")
}
