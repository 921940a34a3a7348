package server

import (
	"slices"

	"howdah/internal/aws/rds"
)

// Implemented are the actions of the query protocol that Howdah does, those that always answer
// an empty list among them: "rds CreateDBInstance", sorted.
func Implemented() []string {
	var all []string
	for _, service := range nobodys().services() {
		if service.Contract == nil {
			continue
		}
		for _, name := range service.Does() {
			all = append(all, service.Name+" "+name)
		}
	}
	slices.Sort(all)
	return all
}

// nobodys is a server of no home. All that it can do is to say which services there are.
func nobodys() *Server { return &Server{rds: rds.Nobodys()} }
