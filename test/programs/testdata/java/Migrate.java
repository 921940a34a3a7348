import java.util.Map;
import org.flywaydb.core.Flyway;

/** Migrates a database as an application does when it starts: Migrate URL DIRECTORY, with the password in PGPASSWORD. */
public class Migrate {
    public static void main(String[] args) {
        var flyway = Flyway.configure()
            .dataSource(args[0], "app", System.getenv("PGPASSWORD"))
            .locations("filesystem:" + args[1])
            .schemas("shop")
            .cleanDisabled(false)
            // CREATE INDEX CONCURRENTLY would wait for Flyway's own lock, as on any PostgreSQL.
            .configuration(Map.of("flyway.postgresql.transactional.lock", "false"))
            .load();
        System.out.println("migrated " + flyway.migrate().migrationsExecuted);
        flyway.validate();
        System.out.println("again " + flyway.migrate().migrationsExecuted);
        flyway.clean();
        System.out.println("anew " + flyway.migrate().migrationsExecuted);
    }
}
