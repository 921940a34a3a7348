// An application written as the wrapper's documentation says. What it does is chosen by its argument:
// see drivers_test.go.
import fs from "node:fs";
import pg from "pg";

const { DB_HOST, DB_PORT, DB_NAME, DB_USER, DB_PASSWORD, DB_PLUGINS, DB_PATTERN, DB_DIALECT, DB_ASK, DB_IAM_HOST, AWS_REGION, DB_CA, DB_MORE } =
  process.env;
const ssl = DB_CA ? { ca: fs.readFileSync(DB_CA) } : { rejectUnauthorized: false };
const more = (DB_MORE ?? "")
  .split(";")
  .filter(Boolean)
  .map((s) => s.split("="))
  .map(([name, value]) => [name, Number(value)]);
const where = { host: DB_HOST, port: Number(DB_PORT), database: DB_NAME, user: DB_USER, password: DB_PASSWORD, ssl };

async function connect() {
  let client;
  if (DB_PLUGINS === "") {
    client = new pg.Client(where);
    client.on("error", () => {});
  } else {
    const { AwsPGClient } = await import("aws-advanced-nodejs-wrapper/pg");
    client = new AwsPGClient({
      ...where,
      plugins: DB_PLUGINS,
      ...(DB_DIALECT ? { dialect: DB_DIALECT } : {}),
      clusterInstanceHostPattern: DB_PATTERN,
      ...Object.fromEntries(more),
      ...(DB_IAM_HOST ? { iamHost: DB_IAM_HOST, iamRegion: AWS_REGION } : {}),
    });
  }
  await client.connect();
  return client;
}

const say = (what, more) => process.stdout.write(`${what} ${Date.now()} ${more}\n`);

async function close(client) {
  try {
    await client?.end();
  } catch {}
}

// Writes one row after the other, until the standard input ends.
async function write() {
  let over = false;
  process.stdin.on("end", () => (over = true)).resume();
  let client;
  for (let number = 0; !over; ) {
    try {
      client ??= await connect();
      await client.query({ text: "INSERT INTO ledger VALUES ($1) ON CONFLICT DO NOTHING", values: [number] });
      say("done", number++);
    } catch (e) {
      say("failed", `${e.constructor.name} ${String(e.message).split("\n")[0]}`);
      // After FailoverSuccessError the connection leads to the new writer.
      if (!["FailoverSuccessError", "TransactionResolutionUnknownError"].includes(e.constructor.name)) {
        await close(client);
        client = undefined;
      }
    }
    await new Promise((r) => setTimeout(r, 10));
  }
  await close(client);
}

async function tell(client) {
  const result = await client.query({ text: DB_ASK });
  say("is", Object.values(result.rows[0])[0]);
}

async function split() {
  const client = await connect();
  for (const reads of [false, true, false]) {
    await client.setReadOnly(reads);
    await tell(client);
  }
  await close(client);
}

async function who() {
  const client = await connect();
  await tell(client);
  await close(client);
}

process.on("uncaughtException", (e) => say("failed", `${e.constructor.name} ${e.message}`));
await ({ write, split }[process.argv[2]] ?? who)();
process.exit(0);
