package backups

import (
	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
)

// secretVariable has the secret of an S3 server's access key.
const secretVariable = "HOWDAH_REPOSITORY_SECRET"

// addFlags are files that a repository is made of, and where its secret is.
type addFlags struct {
	ca, keyFile string
	secret      cli.Secret
}

func newAdd(o *cli.Options) *cobra.Command {
	var in admin.RepositoryAddRequest
	f := addFlags{secret: cli.Secret{Variable: secretVariable}}
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a repository, after a look whether everything works there", Args: cli.OneName,
		Long: "Adds a repository. Before anything is recorded, the control plane and each host that lives write, read, list and delete an " +
			"object there. So a directory that is not the same file system on all hosts is refused, as is one with other files. " +
			"What is written is encrypted with a new key, unless --unencrypted is given or --key-file brings one. " +
			"--adopt takes a place that is a repository already, with its key.",
		Example: "  howdah repository add main --directory /mnt/backups\n" +
			"  howdah repository add main --s3 https://s3.example.com --bucket howdah --access-key KEY --secret-file secret --default",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			if err := f.read(cmd, o, &in); err != nil {
				return err
			}
			return add(cmd, o, in)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Path, "directory", "", "directory, the same file system on all hosts; its whole path")
	flags.StringVar(&in.Endpoint, "s3", "", "URL of an S3 server, as https://HOST:PORT")
	flags.StringVar(&in.Bucket, "bucket", "", "bucket of the S3 server")
	flags.StringVar(&in.Prefix, "prefix", "", "what the names of all objects in the bucket begin with")
	flags.StringVar(&in.Region, "region", "", "region of the S3 server (default us-east-1)")
	flags.StringVar(&f.ca, "ca", "", "file with the certificate that signs that of the S3 server (default: the system's authorities)")
	flags.StringVar(&in.AccessKey, "access-key", "", "access key of the S3 server; its secret comes from a file, "+secretVariable+" or standard input")
	f.secret.Flags(cmd)
	flags.BoolVar(&in.Unencrypted, "unencrypted", false, "encrypt nothing: whoever reads the repository reads all data")
	flags.StringVar(&f.keyFile, "key-file", "", "file with the key, as `howdah repository key export` prints it")
	flags.BoolVar(&in.Adopt, "adopt", false, "take a place that is a repository already: of another home, or of this one before")
	flags.BoolVar(&in.Default, "default", false, "back new databases up there")
	flags.BoolVar(&in.Copies, "copies", false, "keep copies of backups there")
	flags.BoolVar(&in.DryRun, "dry-run", false, "only look whether that would work")
	cli.CompleteFiles(cmd, "ca", "key-file")
	return cmd
}

// read reads what files, standard input and the environment have.
func (f *addFlags) read(cmd *cobra.Command, o *cli.Options, in *admin.RepositoryAddRequest) (err error) {
	if err := cli.Exclusive(cmd, "directory", "s3"); err != nil {
		return err
	}
	if err := f.secret.Check(cmd); err != nil {
		return err
	}
	if err := cli.Exclusive(cmd, "unencrypted", "key-file"); err != nil {
		return err
	}
	if f.ca != "" {
		if in.CA, err = cli.ReadFile(f.ca, "certificate"); err != nil {
			return err
		}
	}
	if f.keyFile != "" {
		if in.KeySecret, err = cli.ReadFile(f.keyFile, "key"); err != nil {
			return err
		}
	}
	if in.Endpoint == "" {
		return nil
	}
	in.Secret, err = f.secret.Read(o)
	return err
}

func add(cmd *cobra.Command, o *cli.Options, in admin.RepositoryAddRequest) error {
	out, err := cli.AskAdmin[admin.Repository](cmd, o, admin.VerbRepositoryAdd, in)
	if err != nil {
		return err
	}
	return o.Print(out, func() error {
		if in.DryRun {
			o.Say("%s can be added at %s", out.Name, where(out))
			return nil
		}
		o.Say("%s is added at %s%s", out.Name, where(out), cli.Yes(out.Default, ", as the default repository"))
		if out.Encrypted && in.KeySecret == "" {
			o.Say("It is encrypted with a key that only this home has. Export it, and keep it elsewhere: %s", o.Pasteable("howdah repository key export "+out.Name))
		}
		return nil
	})
}
