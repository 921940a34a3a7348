// An application with HikariCP, written as the wrapper's documentation says. What it does is chosen
// by its argument: see drivers_test.go.

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Objects;
import java.util.Properties;

public class Program {
  static final String HOST = System.getenv("DB_HOST");
  static final String PORT = System.getenv("DB_PORT");
  static final String DATABASE = System.getenv("DB_NAME");
  static final String PLUGINS = System.getenv("DB_PLUGINS");

  public static void main(String[] args) throws Exception {
    try (HikariDataSource pool = new HikariDataSource(config())) {
      switch (args[0]) {
        case "write" -> write(pool);
        case "split" -> split(pool);
        default -> who(pool);
      }
    }
    System.exit(0); // monitoring threads of the wrapper may still run
  }

  static HikariConfig config() {
    HikariConfig c = new HikariConfig();
    c.setUsername(System.getenv("DB_USER"));
    c.setPassword(System.getenv("DB_PASSWORD"));
    c.setMaximumPoolSize(4);
    if (PLUGINS.isEmpty()) {
      c.setJdbcUrl("jdbc:postgresql://" + HOST + ":" + PORT + "/" + DATABASE);
      verify(c.getDataSourceProperties());
      return c;
    }
    c.setDataSourceClassName("software.amazon.jdbc.ds.AwsWrapperDataSource");
    c.setExceptionOverrideClassName("software.amazon.jdbc.util.HikariCPSQLException");
    c.addDataSourceProperty("jdbcProtocol", "jdbc:postgresql:");
    c.addDataSourceProperty("serverName", HOST);
    c.addDataSourceProperty("serverPort", PORT);
    c.addDataSourceProperty("database", DATABASE);
    c.addDataSourceProperty("targetDataSourceClassName", "org.postgresql.ds.PGSimpleDataSource");
    Properties p = new Properties();
    p.setProperty("wrapperPlugins", PLUGINS);
    if (!System.getenv("DB_DIALECT").isEmpty()) {
      p.setProperty("wrapperDialect", System.getenv("DB_DIALECT"));
    }
    p.setProperty("clusterInstanceHostPattern", System.getenv("DB_PATTERN"));
    if (System.getenv("DB_IAM_HOST") != null) {
      p.setProperty("iamHost", System.getenv("DB_IAM_HOST"));
      p.setProperty("iamRegion", System.getenv("AWS_REGION"));
      p.setProperty("sslmode", "require");
    }
    verify(p);
    for (String setting : Objects.requireNonNullElse(System.getenv("DB_MORE"), "").split(";")) {
      if (!setting.isEmpty()) {
        p.setProperty(setting.split("=")[0], setting.split("=")[1]);
      }
    }
    c.addDataSourceProperty("targetDataSourceProperties", p);
    return c;
  }

  static void verify(Properties p) {
    if (System.getenv("DB_CA") != null) {
      p.setProperty("sslmode", "verify-full");
      p.setProperty("sslrootcert", System.getenv("DB_CA"));
    }
  }

  // Four threads write one row after the other, until the standard input ends.
  static void write(HikariDataSource pool) throws Exception {
    Thread[] threads = new Thread[4];
    boolean[] over = new boolean[1];
    for (int t = 0; t < threads.length; t++) {
      long first = t * 1_000_000L;
      threads[t] = new Thread(() -> {
        for (long id = first; !over[0]; id += put(pool, id) ? 1 : 0) {
          pause();
        }
      });
      threads[t].start();
    }
    while (System.in.read() >= 0) {}
    over[0] = true;
    for (Thread t : threads) {
      t.join();
    }
  }

  static void pause() {
    try {
      Thread.sleep(10);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  static boolean put(HikariDataSource pool, long id) {
    try (Connection c = pool.getConnection();
        PreparedStatement s = c.prepareStatement("INSERT INTO ledger VALUES (?) ON CONFLICT DO NOTHING")) {
      s.setLong(1, id);
      s.executeUpdate();
      say("done", Long.toString(id));
      return true;
    } catch (SQLException e) {
      say("failed", e.getSQLState() + " " + String.valueOf(e.getMessage()).lines().findFirst().orElse(""));
      return false;
    }
  }

  // Where reading and writing connections lead.
  static void split(HikariDataSource pool) throws Exception {
    try (Connection c = pool.getConnection()) {
      for (boolean reads : new boolean[] {false, true, false}) {
        c.setReadOnly(reads);
        tell(c);
      }
    }
  }

  static void who(HikariDataSource pool) throws Exception {
    try (Connection c = pool.getConnection()) {
      tell(c);
    }
  }

  static void tell(Connection c) throws SQLException {
    try (PreparedStatement s = c.prepareStatement(System.getenv("DB_ASK")); ResultSet r = s.executeQuery()) {
      r.next();
      say("is", r.getString(1));
    }
  }

  static synchronized void say(String what, String more) {
    System.out.println(what + " " + System.currentTimeMillis() + " " + more);
  }
}
