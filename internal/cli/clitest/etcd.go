package clitest

import "howdah/internal/admin"

// etcd returns the answer of the fake control plane to commands that make room in its etcd.
func (f *Fake) etcd(body []byte) admin.EtcdAnswer {
	var in admin.EtcdRequest
	read(body, &in)
	out := admin.EtcdAnswer{Members: f.status.Etcd, Deeds: []string{}}
	if in.Do == admin.EtcdMend && f.status.Etcd[0].Full {
		out.Deeds = []string{"compact the history before revision 9000: 7168 MiB in use", "defragment s1: what the compaction frees of 8192 MiB", "disarm the alarm: there is room again"}
	}
	return out
}
