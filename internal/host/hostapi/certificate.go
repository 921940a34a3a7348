package hostapi

import (
	"context"
	"fmt"
	"net"
	"strings"

	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// MemberName returns the common name in the certificate of a member with this id.
func MemberName(id string) string { return memberPrefix + id }

// ServerName returns the common name in the certificate of a server, by the id of its member or the
// name of its host.
func ServerName(of string) string { return "server:" + of }

const memberPrefix = "member:"

// MemberOf returns the id of a member by the common name of its certificate, or "" if it is no
// member's.
func MemberOf(name string) string {
	id, ok := strings.CutPrefix(name, memberPrefix)
	if !ok {
		return ""
	}
	return id
}

// certificate signs for the caller's own name, for the caller's own host, and for members that are
// assigned to it. It signs for nothing else.
func (s *Server) certificate(ctx context.Context, c call, in CertificateRequest) (CertificateAnswer, error) {
	kind, host, ok := strings.Cut(c.caller, ":")
	if !ok || Kind(kind) != Agent && (in.Member != "" || in.For != ForAll) {
		return CertificateAnswer{}, fmt.Errorf("%w: no certificate of a host of this home was shown", errForbidden)
	}
	switch {
	case in.Member != "":
		return s.memberCertificate(ctx, c, host, in)
	case in.For == ForAll:
		return sign(s.CA, in.CSR, certs.Subject{CommonName: c.caller})
	case in.For == ForServer:
		h, err := state.Get[member.Host](ctx, s.Store, state.Host(host))
		if err != nil {
			return CertificateAnswer{}, fmt.Errorf("%w: %w", errForbidden, err)
		}
		// Older releases of pgBackRest look for the address among the names alone.
		names := []string{h.Value.Address}
		return sign(s.CA, in.CSR, certs.Subject{CommonName: ServerName(host), IPs: addresses(names), DNSNames: names, For: certs.ServerOnly})
	default:
		return CertificateAnswer{}, fmt.Errorf("%w: a certificate for %q", errBad, in.For)
	}
}

func (s *Server) memberCertificate(ctx context.Context, c call, host string, in CertificateRequest) (CertificateAnswer, error) {
	assignment, err := state.Get[member.Assignment](ctx, s.Store, state.Assign(host, in.Member))
	if err != nil {
		return CertificateAnswer{}, fmt.Errorf("%w: %w", errForbidden, err)
	}
	subject := certs.Subject{CommonName: c.caller, IPs: addresses(assignment.Value.ServerIPs), DNSNames: assignment.Value.ServerNames}
	switch in.For {
	case ForAll:
	case ForServer:
		subject.CommonName, subject.For = ServerName(in.Member), certs.ServerOnly
	case ForClient:
		return s.clientCertificate(ctx, in)
	default:
		return CertificateAnswer{}, fmt.Errorf("%w: a certificate for %q", errBad, in.For)
	}
	ca, err := s.authority(ctx, assignment.Value.Authority)
	if err != nil {
		return CertificateAnswer{}, err
	}
	return sign(ca, in.CSR, subject)
}

// clientCertificate signs a certificate that names the member and no address.
func (s *Server) clientCertificate(ctx context.Context, in CertificateRequest) (CertificateAnswer, error) {
	ca, err := s.Members(ctx)
	if err != nil {
		return CertificateAnswer{}, err
	}
	answer, err := sign(ca, in.CSR, certs.Subject{CommonName: MemberName(in.Member), For: certs.ClientOnly})
	answer.Members = ca.CertPEM
	return answer, err
}

func sign(ca *certs.CA, csr []byte, subject certs.Subject) (CertificateAnswer, error) {
	cert, err := ca.Sign(csr, subject)
	if err != nil {
		return CertificateAnswer{}, fmt.Errorf("%w: %w", errBad, err)
	}
	return CertificateAnswer{Certificate: cert}, nil
}

func addresses(texts []string) []net.IP {
	var all []net.IP
	for _, ip := range texts {
		all = append(all, net.ParseIP(ip))
	}
	return all
}

// authority returns the home's own authority, or one of databases.
func (s *Server) authority(ctx context.Context, named string) (*certs.CA, error) {
	if named == "" || s.Authority == nil {
		return s.CA, nil
	}
	return s.Authority(ctx, named)
}
