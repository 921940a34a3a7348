import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Writes rows through a pool, and prints the number of each row that was acknowledged, until its standard
 * input ends: Pool URL, with the password in PGPASSWORD. The table "rows" is there.
 */
public class Pool {
    public static void main(String[] args) throws Exception {
        var config = new HikariConfig();
        config.setJdbcUrl(args[0]);
        config.setUsername("app");
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(4);
        config.setConnectionTimeout(2000);
        config.setValidationTimeout(1000);
        var next = new AtomicLong();
        try (var pool = new HikariDataSource(config)) {
            for (int i = 0; i < 4; i++) {
                var writer = new Thread(() -> {
                    while (true) write(pool, next.incrementAndGet());
                });
                writer.setDaemon(true);
                writer.start();
            }
            while (System.in.read() != -1) { }
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    // A number that failed is not used again: its row may be there or not.
    static void write(HikariDataSource pool, long n) {
        try (var connection = pool.getConnection(); var insert = connection.prepareStatement("INSERT INTO rows VALUES (?)")) {
            insert.setLong(1, n);
            insert.executeUpdate();
            synchronized (System.out) {
                System.out.println(n);
            }
            Thread.sleep(2);
        } catch (SQLException e) {
            pause();
        } catch (InterruptedException e) {
            return;
        }
    }

    static void pause() {
        try {
            Thread.sleep(5);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
