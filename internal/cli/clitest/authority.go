package clitest

import (
	"time"

	"howdah/internal/admin"
)

// fakeAuthorities are those that the fake control plane has.
var fakeAuthorities = []admin.Authority{
	{Name: "howdah-ca", ValidFrom: yearOf(2026), ValidTill: yearOf(2046), Thumbprint: "aa", Newer: "howdah-ca-g2", Databases: 3},
	{Name: "howdah-ca-g2", ValidFrom: yearOf(2027), ValidTill: yearOf(2067), Thumbprint: "bb"},
}

func yearOf(year int) time.Time { return time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC) }
