package verdict

import (
	"fmt"

	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// ioLimit: the server reads or writes as often as it may, and its sessions wait for that. Who waits for a
// lock waits for who holds it, and is left aside.
func ioLimit(e Evidence) (Finding, bool) {
	reasons := append(e.limit("write"), e.limit("read")...)
	free := e.mean(series.Active) - e.mean(series.ActiveLock)
	if len(reasons) == 0 || free <= 0 {
		return Finding{}, false
	}
	share := (e.mean(series.ActiveIO) + e.mean(series.ActiveWAL)) / free
	if share < waitShare {
		return Finding{}, false
	}
	reasons = append(reasons, reason("io_waits", fmt.Sprintf("Of the active sessions that waited for no lock, %s waited for data files or WAL.", percent(share)),
		Figure{"io_share", share, "share", waitShare}))
	subject := "writes"
	if reasons[0].Key == "read_limit" {
		subject = "reads"
	}
	return Finding{Cause: IOLimit, Subject: subject, Sentence: "The limit of I/O operations limits it: the server does nearly as many as it may.", Reasons: reasons}, true
}

// walCommit: sessions write and flush WAL, or wait for who does.
func walCommit(e Evidence) (Finding, bool) {
	share := e.of(wait.WAL)
	if share < walShare {
		return Finding{}, false
	}
	_, top := e.events(func(event wait.Event) bool { return event.Class() == wait.WAL })
	f := Finding{
		Cause: WAL, Key: "wal", Subject: top.String(), Sentence: "Writing WAL limits it: commits wait until their WAL is on the disk.",
		Reasons: []Reason{reason("wal_share", fmt.Sprintf("%s of the active sessions wrote or flushed WAL, or waited for who does.", percent(share)),
			Figure{"wal_share", share, "share", walShare}), e.topReason(top)},
	}
	if top.Inserts() {
		f.Key, f.Sentence = "wal_insert", "Writing WAL limits it: sessions wait for a place in the WAL buffers, into which they all write."
	}
	if shared, known := e.Observed.Mean(series.CommitsPerSync); known {
		syncs := e.mean(series.WALSyncs)
		f.Reasons = append(f.Reasons, reason("group_commit", fmt.Sprintf("There were %s flushes a second, and %s transactions for each, those that only read among them.", number(syncs), number(shared)),
			Figure{Name: series.WALSyncs, Value: syncs, Unit: "1/s"}, Figure{Name: series.CommitsPerSync, Value: shared, Unit: "1"}))
	}
	if took, known := e.Observed.Mean(series.WALSyncLatency); known && took > 0 {
		f.Reasons = append(f.Reasons, reason("sync_latency", fmt.Sprintf("A flush took %s ms.", number(took)),
			Figure{Name: series.WALSyncLatency, Value: took, Unit: "ms"}))
	}
	if rate, known := e.Observed.Mean(series.WALPosition); known {
		f.Reasons = append(f.Reasons, reason("wal_volume", fmt.Sprintf("%s MB of WAL came a second.", number(rate/1e6)),
			Figure{Name: series.WALPosition, Value: rate, Unit: "bytes/s"}))
	}
	f.Reasons = append(f.Reasons, e.limit("write")...)
	return f, true
}

// reads: sessions wait for data files.
func reads(e Evidence) (Finding, bool) {
	share, top := e.events(wait.Event.Reads)
	hits, hitsKnown := e.Observed.Mean(series.HitRatio)
	pressure, pressed := e.pressure()
	f := Finding{Cause: ReadIO, Subject: top.String(), Sentence: "Reading limits it: sessions wait for data that are not in memory."}
	switch {
	case share >= waitShare:
	case pressed && pressure >= pressureIO && hitsKnown && hits < goodHits && share >= fewReads:
	default:
		return Finding{}, false
	}
	f.Reasons = append(f.Reasons, reason("read_share", fmt.Sprintf("%s of the active sessions waited for reads of data files.", percent(share)),
		Figure{"read_share", share, "share", waitShare}))
	if hitsKnown {
		f.Reasons = append(f.Reasons, reason("hit_ratio", fmt.Sprintf("%s of the blocks were found in shared buffers.", percent(hits)),
			Figure{"hit_ratio", hits, "share", goodHits}))
	}
	if pressed {
		f.Reasons = append(f.Reasons, reason("io_pressure", fmt.Sprintf("In %s of the time some task waited for I/O.", percent(pressure)),
			Figure{"io_pressure", pressure, "share", pressureIO}))
	}
	f.Reasons = append(f.Reasons, e.device("read", series.DeviceReadOps, series.DeviceReadLatency)...)
	return f, true
}

// writes: sessions themselves write data files, or make them longer.
func writes(e Evidence) (Finding, bool) {
	share, top := e.events(wait.Event.Writes)
	if share < waitShare {
		return Finding{}, false
	}
	f := Finding{
		Cause: WriteIO, Subject: top.String(), Sentence: "Writing data files limits it.",
		Reasons: []Reason{reason("write_share", fmt.Sprintf("%s of the active sessions waited for writes of data files.", percent(share)),
			Figure{"write_share", share, "share", waitShare}), e.topReason(top)},
	}
	f.Reasons = append(f.Reasons, e.device("write", series.DeviceWriteOps, series.DeviceWriteLatency)...)
	return f, true
}

// temporary: a sort or a hash does not fit into work_mem.
func temporary(e Evidence) (Finding, bool) {
	share, top := e.events(wait.Event.Temporary)
	if share < waitShare {
		return Finding{}, false
	}
	return Finding{
		Cause: Temporary, Subject: top.String(), Sentence: "Temporary files limit it: sorts or hashes do not fit into work_mem.",
		Reasons: []Reason{reason("temporary_share", fmt.Sprintf("%s of the active sessions waited for temporary files.", percent(share)),
			Figure{"temporary_share", share, "share", waitShare})},
	}, true
}

// checkpoint: throughput falls while a checkpoint runs, or the images of pages after it fill the
// WAL.
func checkpoint(e Evidence) (Finding, bool) {
	f := Finding{Cause: Checkpoint}
	if dip := e.Load.CheckpointTPS; dip > 0 && dip < checkpointDip {
		f.Key, f.Sentence = "checkpoint_dip", "Checkpoints limit it: throughput falls while one runs."
		f.Reasons = append(f.Reasons, reason("dip", fmt.Sprintf("While a checkpoint ran there was %s of the throughput of the other time.", percent(dip)),
			Figure{"checkpoint_tps", dip, "share", checkpointDip}))
	}
	images, known := e.Observed.Mean(series.FPIShare)
	written, _ := e.events(wait.Event.Writes)
	busy := e.of(wait.WAL) + written
	if known && images > imageShare && busy >= imagesMatter {
		if f.Sentence == "" {
			f.Key, f.Sentence = "checkpoint_images", "Checkpoints limit it: after each one whole pages go into the WAL."
		}
		f.Reasons = append(f.Reasons, reason("images", fmt.Sprintf("At most %s of the WAL are images of whole pages, and %s of the active sessions write.", percent(images), percent(busy)),
			Figure{"image_share", images, "share", imageShare}, Figure{"write_share", busy, "share", imagesMatter}))
	}
	return f, len(f.Reasons) > 0
}

// pressure prefers that of the server's own group.
func (e Evidence) pressure() (float64, bool) {
	if own, known := e.Observed.Mean(series.ServerPSIIO); known {
		return own, true
	}
	machine, known := e.Observed.Mean(series.MachinePSIIO)
	return machine, known && !e.Elsewhere
}

// device says what the disks did, if that is known, and how much of it the server may.
func (e Evidence) device(what, ops, latency string) []Reason {
	var reasons []Reason
	rate, known := e.Observed.Mean(ops)
	took, also := e.Observed.Mean(latency)
	if known && also {
		reasons = append(reasons, reason("device_"+what, fmt.Sprintf("The disks did %s %ss a second, and one took %s ms.", number(rate), what, number(took)),
			Figure{Name: ops, Value: rate, Unit: "1/s"}, Figure{Name: latency, Value: took, Unit: "ms"}))
	}
	return append(reasons, e.limit(what)...)
}

// limit says how many operations the server may do, if it does nearly so many: the kernel has them
// wait before a disk sees them.
func (e Evidence) limit(what string) []Reason {
	done, known := e.Observed.Mean("server." + what + "_ops")
	most, also := e.Observed.Mean("server." + what + "_ops_limit")
	if !known || !also || done < mostOfLimit*most {
		return nil
	}
	return []Reason{reason(what+"_limit", fmt.Sprintf("The server may do %s %ss a second, and did %s.", number(most), what, number(done)),
		Figure{Name: "server." + what + "_ops_limit", Value: most, Unit: "1/s"}, Figure{"server." + what + "_ops", done, "1/s", mostOfLimit * most})}
}
