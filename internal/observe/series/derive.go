package series

// Derive adds the columns that follow from others: ratios, latencies and what is left over. It
// leaves out those whose parts are not known.
func Derive(values map[string]float64) {
	get := func(name string) (float64, bool) {
		value, known := values[name]
		return value, known
	}
	for _, d := range derived {
		if value, known := d.of(get); known {
			values[d.name] = value
		}
	}
}

// getter returns a column's value, and whether it is known.
type getter func(name string) (float64, bool)

// derivation makes a column of others. A summary makes it of the means: the mean of ratios is not
// the ratio of means.
type derivation struct {
	name string
	of   func(getter) (float64, bool)
}

var derived = []derivation{
	{DeviceReadLatency, ratio(DeviceReadTime, DeviceReadOps)},
	{DeviceWriteLatency, ratio(DeviceWriteTime, DeviceWriteOps)},
	{DeviceFlushLatency, ratio(DeviceFlushTime, DeviceFlushOps)},
	{WALSyncLatency, ratio(WALSyncTime, WALSyncs)},
	{CommitsPerSync, ratio(Commits, WALSyncs)},
	{HitRatio, hitRatio},
	{FPIShare, fpiShare},
	{MachineForeign, foreign},
}

// ratio has no value where the lower part is 0: nothing was done that could have taken time.
func ratio(upper, lower string) func(getter) (float64, bool) {
	return func(get getter) (float64, bool) {
		u, known := get(upper)
		l, also := get(lower)
		if !known || !also || l <= 0 {
			return 0, false
		}
		return u / l, true
	}
}

func hitRatio(get getter) (float64, bool) {
	hit, known := get(BlocksHit)
	read, also := get(BlocksRead)
	if !known || !also || hit+read <= 0 {
		return 0, false
	}
	return hit / (hit + read), true
}

// blockSize is PostgreSQL's, as nearly everybody builds it.
const blockSize = 8192

// fpiShare is an estimate: an image of a page is at most a page, and holes and compression make it
// smaller.
func fpiShare(get getter) (float64, bool) {
	images, known := get(WALImages)
	bytes, also := get(WALBytes)
	if !known || !also || bytes <= 0 {
		return 0, false
	}
	return min(1, images*blockSize/bytes), true
}

// foreign is the CPU that nobody whom we know used. Parts that are not watched count as nothing:
// Only the machine and the server must be known.
func foreign(get getter) (float64, bool) {
	left, known := get(MachineTasks)
	server, also := get(ServerCPU)
	if !known || !also {
		return 0, false
	}
	left -= server
	for _, name := range []string{GeneratorCPU, KnownCPU, ObserverCPU, MachineKernelThreads} {
		if value, watched := get(name); watched {
			left -= value
		}
	}
	return max(0, left), true
}
