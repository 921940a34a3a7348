package db

import (
	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

func newDB(o *cli.Options) *cobra.Command {
	db := cli.Group("db", "Create, list, change and delete databases",
		"Databases are DB instances and DB clusters, as everywhere in the RDS API: what these commands do, boto3 and the AWS CLI "+
			"do as well. Where an instance and a cluster share a name, say instance/NAME or cluster/NAME.",
		newDBCreate(o), newDBList(o), newDBShow(o), newDBModify(o), newDBDelete(o), newDBFailover(o), newDBReboot(o),
		newDBStart(o), newDBStop(o), newDBPromote(o), newDBConnect(o), newDBRestore(o), newDBClone(o), newDBRewind(o),
	)
	db.Aliases = []string{"dbs", "database", "databases"}
	return db
}
