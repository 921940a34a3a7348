module howdah

go 1.26.0

require (
	// the lab: percentiles of latencies, of which only histograms can be added up.
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	// what the SDK's client of S3 stands on; tests: the API must work with the Go SDK, unmodified.
	github.com/aws/aws-sdk-go-v2 v1.48.0
	// tests: the SDK's RDS client.
	github.com/aws/aws-sdk-go-v2/service/rds v1.132.0
	// repositories in S3: retries, signatures and XML of a protocol that we did not make.
	github.com/aws/aws-sdk-go-v2/service/s3 v1.114.10
	// tests: the SDK's client of notifications.
	github.com/aws/aws-sdk-go-v2/service/sns v1.47.8
	// tests: the SDK's client of who one is.
	github.com/aws/aws-sdk-go-v2/service/sts v1.51.7
	// the typed errors of the SDK.
	github.com/aws/smithy-go v1.28.9
	// tests: differences that a person can read.
	github.com/google/go-cmp v0.7.0
	// PostgreSQL client: logins, probes, acknowledged writers.
	github.com/jackc/pgx/v5 v5.12.0
	// names of databases: the messages of DNS and their transport, a protocol that we did not make.
	github.com/miekg/dns v1.1.73
	// command line with help, completion and generated docs.
	github.com/spf13/cobra v1.10.2
	// flags of cobra's commands, walked for docs and completion.
	github.com/spf13/pflag v1.0.10
	// nftables' sockets and sessions to cut, without a process each.
	github.com/vishvananda/netlink v1.3.1
	// network namespaces of tests of endpoints.
	github.com/vishvananda/netns v0.0.5
	// etcd's error codes and versions.
	go.etcd.io/etcd/api/v3 v3.7.3
	// etcd's URL types, for its embedded server.
	go.etcd.io/etcd/client/pkg/v3 v3.7.3
	// state and consensus: the client.
	go.etcd.io/etcd/client/v3 v3.7.3
	// etcd's restoration of snapshots: a home that was lost.
	go.etcd.io/etcd/etcdutl/v3 v3.7.3
	// state and consensus: the embedded server.
	go.etcd.io/etcd/server/v3 v3.7.3
	// etcd logs through it: its log joins ours.
	go.uber.org/zap v1.27.1
	// which DNS zones are public names (publicsuffix); frames of HTTP/2, for tests of a client that keeps
	// to no rules.
	golang.org/x/net v0.61.0
	// errgroup: parts that end together.
	golang.org/x/sync v0.24.0
	// pidfd, cgroup and freezer calls that syscall lacks.
	golang.org/x/sys v0.49.0
	// passwords that are typed are not echoed.
	golang.org/x/term v0.47.0
	// rates of what one database may write to etcd.
	golang.org/x/time v0.15.0
	// the lab: plots as SVG and PNG, without a browser.
	gonum.org/v1/plot v0.17.0
	// dial options and status codes of etcd's client; the gate before etcd.
	google.golang.org/grpc v1.83.2
	// sizes of etcd's messages.
	google.golang.org/protobuf v1.36.11
	// tests: sequences of operations and faults, drawn from a model, and shrunk.
	pgregory.net/rapid v1.3.0
	// the lab's experiments, which people write.
	sigs.k8s.io/yaml v1.6.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.27 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.12 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.12 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.25 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/checksum v1.11.13 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/s3shared v1.20.12 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/coreos/go-semver v0.3.1 // indirect
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus v1.1.0 // indirect
	github.com/grpc-ecosystem/go-grpc-middleware/v2 v2.3.3 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.29.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_golang v1.23.2 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.67.5 // indirect
	github.com/prometheus/procfs v0.16.1 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	github.com/soheilhy/cmux v0.1.5 // indirect
	github.com/tmc/grpc-websocket-proxy v0.0.0-20220101234140-673ab2c3ae75 // indirect
	github.com/xiang90/probing v0.0.0-20221125231312-a49e3df8f510 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.etcd.io/etcd/pkg/v3 v3.7.3 // indirect
	go.etcd.io/raft/v3 v3.7.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.68.0 // indirect
	go.opentelemetry.io/otel v1.45.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.45.0 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.45.0 // indirect
	go.opentelemetry.io/otel/metric v1.45.0 // indirect
	go.opentelemetry.io/otel/sdk v1.45.0 // indirect
	go.opentelemetry.io/otel/trace v1.45.0 // indirect
	go.opentelemetry.io/proto/otlp v1.11.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260803160001-6ac0973c030d // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260803160001-6ac0973c030d // indirect
	gopkg.in/natefinch/lumberjack.v2 v2.2.1 // indirect
	k8s.io/utils v0.0.0-20260108192941-914a6e750570 // indirect
)
