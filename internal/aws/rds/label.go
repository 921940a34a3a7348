package rds

import (
	"reflect"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
)

// checkLabels refuses what would be shown as on and do nothing: logs that are sent to
// CloudWatch, Performance Insights and Enhanced Monitoring. Records that an earlier release made
// may have them: they are shown as off, may be turned off, and are in nobody's way.
func checkLabels(in any) error {
	var err error
	front.Each(in, func(name string, value reflect.Value) {
		switch v := value.Interface().(type) {
		case []string:
			if name == "EnableCloudwatchLogsExports" && len(v) > 0 {
				err = noLogExports(name, v)
			}
		case *rds.CloudwatchLogsExportConfiguration:
			if len(v.EnableLogTypes) > 0 {
				err = noLogExports("EnableLogTypes", v.EnableLogTypes)
			}
		case *bool:
			if name == "EnablePerformanceInsights" && *v {
				err = wire.NewError(api.ErrInvalidParameterCombination,
					"Performance Insights not supported for this configuration. Leave EnablePerformanceInsights away.")
			}
		case *string:
			if name == "MasterUserSecretKmsKeyId" {
				err = wire.NewError(rds.ErrKMSKeyNotAccessible, "The specified KMS key [%s] does not exist, is not enabled or you do not have permissions to access it. Leave %s away.", *v, name)
			}
		case *int32:
			if name == "MonitoringInterval" && slices.Contains(look.MonitoringIntervals, int(*v)) && *v != 0 {
				err = wire.NewError(api.ErrInvalidParameterCombination,
					"Enhanced Monitoring not supported for this configuration. Leave MonitoringInterval and MonitoringRoleARN away.")
			}
		}
	})
	return err
}

func noLogExports(parameter string, types []string) error {
	return wire.NewError(api.ErrInvalidParameterCombination,
		"You cannot use the log types '%s' with this engine version. For supported log types, see the documentation. Leave %s away: DescribeDBLogFiles and DownloadDBLogFilePortion read the logs.",
		strings.Join(types, "','"), parameter)
}
