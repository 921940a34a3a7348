import fs from 'node:fs'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { defineConfig } from 'prisma/config'

// Prisma Migrate's engine is a program that does not come from npm. The same engine in WebAssembly is in
// the package of Prisma 6 (7 has no `engine` any more), and does not work as it is with any PostgreSQL:
// - It asks the catalogue for "char" and name, two types that its adapter does not know. They are text here.
const asText: Record<number, number> = { 18: 25, 19: 25 }
const addFields = pg.Result.prototype.addFields
pg.Result.prototype.addFields = function (fields: { dataTypeID: number }[]) {
  for (const f of fields) f.dataTypeID = asText[f.dataTypeID] ?? f.dataTypeID
  return addFields.call(this, fields)
}
// - It drops the shadow database while a connection to it idles in a pool. PostgreSQL waits five seconds
//   for that to end.
const idleTimeoutMillis = 100

export default defineConfig({
  experimental: { adapter: true },
  engine: 'js',
  schema: 'schema.prisma',
  migrations: { path: 'migrations' },
  // The rest is in the environment, as for libpq: PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE.
  adapter: async () => new PrismaPg({ ssl: { ca: fs.readFileSync(process.env.PGSSLROOTCERT!, 'utf8') }, idleTimeoutMillis }),
})
