// An application with Prisma's client: it writes and reads what the schema has, and says in one line each what it saw.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { PrismaPg } from '@prisma/adapter-pg'
import { Prisma, PrismaClient } from './generated/index.js'

const adapter = new PrismaPg({ ssl: { ca: fs.readFileSync(process.env.PGSSLROOTCERT, 'utf8') } })
const db = new PrismaClient({ adapter })

await db.product.createMany({ data: [{ sku: 'tent', left: 5 }, { sku: 'rope', left: 100 }] })
const ann = await db.customer.create({
  data: {
    email: 'Ann@example.com',
    name: 'Ann Howe',
    orders: {
      create: {
        total: new Prisma.Decimal('1234567890.12'),
        tags: ['new', "d'or"],
        more: { gift: true, lines: [1, 2.5, null] },
        blob: Uint8Array.from([0, 1, 255]),
        items: { create: [{ sku: 'tent', count: 1 }, { sku: 'rope', count: 20 }] },
      },
    },
  },
  include: { orders: { include: { items: true } } },
})
const order = await db.order.findUniqueOrThrow({ where: { id: ann.orders[0].id } })
assert.equal(typeof order.id, 'bigint')
assert.match(order.key, /^[0-9a-f-]{36}$/)
assert.equal(order.total.toString(), '1234567890.12')
assert.deepEqual(order.tags, ['new', "d'or"])
assert.deepEqual(order.more, { gift: true, lines: [1, 2.5, null] })
assert.deepEqual([...order.blob], [0, 1, 255])
assert.equal(order.state, 'open')
assert.ok(Math.abs(order.at - Date.now()) < 3600_000)
console.log('types')

// citext: the same address in other letters is the same customer.
const again = db.customer.create({ data: { email: 'ANN@example.com' } })
await assert.rejects(again, (e) => e.code === 'P2002')
const same = await db.customer.upsert({ where: { email: 'ann@EXAMPLE.com' }, create: { email: 'x' }, update: { name: 'Ann Hower' } })
assert.equal(same.id, ann.id)
console.log('constraints')

// Each takes one tent: five may, and the others are told so. Conflicts are tried again, as Prisma's documentation says.
async function take(n) {
  for (;;) {
    try {
      return await db.$transaction(async (tx) => {
        const tent = await tx.product.findUniqueOrThrow({ where: { sku: 'tent' } })
        if (tent.left === 0) throw new Error('sold out')
        await tx.product.update({ where: { sku: 'tent' }, data: { left: tent.left - 1 } })
        return tx.order.create({ data: { customerId: ann.id, total: n, state: 'paid', items: { create: { sku: 'tent', count: 1 } } } })
      }, { isolationLevel: 'Serializable', maxWait: 60_000, timeout: 60_000 })
    } catch (e) {
      if (e.code !== 'P2034') throw e
    }
  }
}
const taken = await Promise.allSettled([1, 2, 3, 4, 5, 6, 7, 8].map(take))
assert.equal(taken.filter((t) => t.status === 'fulfilled').length, 5)
assert.deepEqual(new Set(taken.filter((t) => t.status === 'rejected').map((t) => t.reason.message)), new Set(['sold out']))
console.log('transactions')

const sums = await db.order.groupBy({ by: ['state'], _count: true, orderBy: { state: 'asc' } })
assert.deepEqual(sums, [{ _count: 1, state: 'open' }, { _count: 5, state: 'paid' }])
const like = await db.$queryRaw`SELECT email::text FROM customers WHERE name % ${'An Hower'}`
assert.deepEqual(like, [{ email: 'Ann@example.com' }])
const tagged = await db.order.count({ where: { tags: { has: 'new' }, more: { path: ['gift'], equals: true } } })
assert.equal(tagged, 1)
console.log('queries')

await db.customer.delete({ where: { id: ann.id } })
assert.equal(await db.item.count(), 0)
console.log('cascades')
await db.$disconnect()
