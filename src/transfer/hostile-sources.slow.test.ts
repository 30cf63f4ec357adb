import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { openMysqlSource } from '@sluice/import/mysql-source'
import { readOtherGateway } from '@sluice/import/other-gateway'
import { openPostgresSource } from '@sluice/import/postgres-source'
import { READ_LIMITS, type ReadLimits } from '@sluice/import/read-limits'
import { RowReader } from '@sluice/import/row-reader'
import { mysqlAddress, type SourceDatabase } from '@sluice/import/source'
import { openSqliteSource } from '@sluice/import/sqlite-source'
import { describe, expect, onTestFinished, test } from 'vitest'
import { familyDatabase } from '../../test/stores/family-database.ts'
import { ENGINES } from '../../test/stores/engines.ts'
import { SOURCE_READERS } from './source-readers.ts'

const ENDLESS = 'with recursive n(id) as (select 1 union all select id + 1 from n)'

async function opened(place: string, bounds: Partial<ReadLimits> = {}): Promise<SourceDatabase> {
  const all = { ...READ_LIMITS, ...bounds, ms: READ_LIMITS.ms }
  const source = place.startsWith('postgres')
    ? await openPostgresSource(place, SOURCE_READERS.postgres, { limits: all })
    : openSqliteSource(place, all)
  onTestFinished(() => source.close())
  // A busy machine may take longer to connect than a test waits for what never comes.
  all.ms = bounds.ms ?? READ_LIMITS.ms
  return source
}

describe.each(ENGINES)('a hostile source on $name', (engine) => {
  test('an import source is not read if one of its tables is a view, whatever the view selects', async () => {
    const family = await familyDatabase('new-api', engine.name)
    await family.sql('alter table users rename to people')
    await family.sql(`create view users as ${ENDLESS} select id, 'x' as username, 1 as quota from n`)
    await expect(readOtherGateway(await opened(family.place))).rejects.toThrow(
      '"users" is a view, and nothing but plain tables',
    )
  })

  test('an import source is not read if its options table is a view', async () => {
    const family = await familyDatabase('new-api', engine.name)
    await family.sql('drop table options')
    await family.sql(`create view options as ${ENDLESS} select 'k' || id as key, 'v' as value from n`)
    await expect(readOtherGateway(await opened(family.place))).rejects.toThrow('"options" is a view')
  })

  test('an import source is read up to the maximum number of rows', async () => {
    const family = await familyDatabase('new-api', engine.name)
    for (let n = 0; n < 60; n += 1) await family.insert('options', { key: `k${n}`, value: 'v' })
    expect((await readOtherGateway(await opened(family.place, { rows: 60 }))).options.size).toBe(60)
    await expect(readOtherGateway(await opened(family.place, { rows: 59 }))).rejects.toThrow(
      'the table "options" has more than 59 rows',
    )
  })

  test('an import source is read up to the maximum number of bytes of all its tables together', async () => {
    const family = await familyDatabase('new-api', engine.name)
    await family.insert('options', { key: 'a', value: 'v'.repeat(60_000) })
    await family.insert('users', { id: 1, username: 'u'.repeat(60_000), password: '', quota: 0 })
    expect((await readOtherGateway(await opened(family.place, { bytes: 150_000 }))).users).toHaveLength(1)
    await expect(readOtherGateway(await opened(family.place, { bytes: 100_000 }))).rejects.toThrow(
      /more than 100000 bytes/,
    )
  })
})

/** Adds tables that have the same root, which takes far less time than creating them. */
function addTables(place: string, tables: number, statement: (name: string) => string): void {
  const db = new DatabaseSync(place)
  db.enableDefensive(false)
  db.exec('PRAGMA writable_schema = ON')
  db.exec('BEGIN')
  const insert = db.prepare("INSERT INTO sqlite_schema VALUES ('table', ?, ?, 2, ?)")
  for (let n = 0; n < tables; n += 1) insert.run(`t${n}`, `t${n}`, statement(`t${n}`))
  db.exec('COMMIT')
  db.close()
}

describe('a hostile source on SQLite', () => {
  test('an import does not open a SQLite source whose schema has more tables than any gateway', async () => {
    const [large, huge] = [
      await familyDatabase('new-api', 'SQLite'),
      await familyDatabase('new-api', 'SQLite'),
    ]
    addTables(large.place, 1_000, (name) => `CREATE TABLE ${name}(a)`)
    expect((await readOtherGateway(await opened(large.place))).users).toEqual([])
    addTables(huge.place, 10_000, (name) => `CREATE TABLE ${name}(a)`)
    await expect(opened(huge.place)).rejects.toThrow('more than 10000 tables and indexes')
  })

  test('an import does not open a SQLite source whose schema has very long statements', async () => {
    const family = await familyDatabase('new-api', 'SQLite')
    addTables(family.place, 2, (name) => `CREATE TABLE ${name}(a) /* ${'x'.repeat(9 * 2 ** 20)} */`)
    await expect(opened(family.place)).rejects.toThrow('its schema has more than 16777216 bytes')
  })

  test('an import measures the rows of a SQLite source, whatever an index states about their sizes', async () => {
    const family = await familyDatabase('new-api', 'SQLite')
    await family.insert('options', { key: 'a', value: '' })
    const db = new DatabaseSync(family.place)
    db.enableDefensive(false)
    db.exec('CREATE INDEX sizes ON options(octet_length("key"), octet_length("value"))')
    const { rootpage, sql } =
      db.prepare("SELECT rootpage, sql FROM sqlite_schema WHERE name = 'sizes'").get() ?? {}
    db.exec("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'sizes'")
    db.close()
    const again = new DatabaseSync(family.place)
    again.enableDefensive(false)
    again.exec("UPDATE options SET value = printf('%.*c', 60000, 'v'); PRAGMA writable_schema = ON")
    again
      .prepare("INSERT INTO sqlite_schema VALUES ('index', 'sizes', 'options', ?, ?)")
      .run(rootpage ?? 0, sql ?? '')
    again.close()
    expect((await readOtherGateway(await opened(family.place, { bytes: 60_001 }))).options.size).toBe(1)
    await expect(readOtherGateway(await opened(family.place, { bytes: 60_000 }))).rejects.toThrow(
      /more than 60000 bytes/,
    )
  })

  test('an import reads a SQLite source up to the maximum time', async () => {
    const family = await familyDatabase('new-api', 'SQLite')
    await family.insert('options', { key: 'a', value: 'v' })
    await expect(readOtherGateway(await opened(family.place, { ms: -1 }))).rejects.toThrow(
      '"options" took longer',
    )
  })

  test('an import does not read a SQLite source with a virtual table or computed columns', async () => {
    const virtual = await familyDatabase('new-api', 'SQLite')
    await virtual.sql('drop table options')
    await virtual.sql('create virtual table options using fts5(key, value)')
    await expect(readOtherGateway(await opened(virtual.place))).rejects.toThrow(
      '"options" is a virtual table, and',
    )
    const computed = await familyDatabase('new-api', 'SQLite')
    await computed.sql('drop table options')
    await computed.sql('create table options (key text, value as (hex(zeroblob(100000000))))')
    await computed.sql("insert into options (key) values ('a')")
    expect((await readOtherGateway(await opened(computed.place))).options.size).toBe(0)
  })
})

describe.runIf(ENGINES.some(({ name }) => name === 'PostgreSQL'))('a hostile source on PostgreSQL', () => {
  test('an import does not read a PostgreSQL source if a row security policy would be executed', async () => {
    const family = await familyDatabase('new-api', 'PostgreSQL')
    // Superusers bypass policies.
    const reader = `reader_${process.pid}_${Date.now()}`
    await family.sql(`create role ${reader} login password 'reads'`)
    onTestFinished(async () => {
      await family.sql(`drop owned by ${reader}`)
      await family.sql(`drop role ${reader}`)
    })
    await family.sql(`grant select on all tables in schema public to ${reader}`)
    const url = new URL(family.place)
    url.username = reader
    url.password = 'reads'
    await family.sql(
      "create function ran() returns boolean language plpgsql as $$ begin raise 'it ran'; end $$",
    )
    await family.sql("insert into users (id, username, password) values (1, 'x', '')")
    await family.sql('create policy p on users using (ran())')
    await family.sql('alter table users enable row level security')
    await expect(readOtherGateway(await opened(url.href))).rejects.toThrow(/affected by row-level security/)
  })

  test.each([
    ['partitioned table', 'create table options (key text, value text) partition by list (key)'],
    ['materialized view', "create materialized view options as select 'k' as key, 'v' as value"],
  ])('a PostgreSQL source is not read where a table is a %s', async (kind, statement) => {
    const family = await familyDatabase('new-api', 'PostgreSQL')
    await family.sql('drop table options')
    await family.sql(statement)
    await expect(readOtherGateway(await opened(family.place))).rejects.toThrow(`"options" is a ${kind}`)
  })
})

/** Encodes a message of PostgreSQL's protocol. */
function message(type: string, body: Buffer = Buffer.alloc(0), claimed = body.length): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 0, 'latin1')
  head.writeInt32BE(claimed + 4, 1)
  return Buffer.concat([head, body])
}

const COLUMN = Buffer.concat([
  Buffer.from([0, 1]),
  Buffer.from('id\0'),
  Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 255, 255, 255, 255, 255, 255, 0, 0]),
])
const ROW = message('D', Buffer.concat([Buffer.from([0, 1, 0, 0, 3, 232]), Buffer.alloc(1000, 'x')]))
const READY = message('Z', Buffer.from('I'))

/**
 * Starts a server that speaks enough of the protocol for a client to query it; `answer` sends the results.
 */
async function server(answer: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = []
  const listener = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    let asked = 0
    socket.on('data', () => {
      asked += 1
      if (asked === 1) socket.write(Buffer.concat([message('R', Buffer.alloc(4)), READY]))
      else if (asked <= 3) socket.write(Buffer.concat([message('C', Buffer.from('SET\0')), READY]))
      else answer(socket)
    })
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  return `postgres://u@127.0.0.1:${(listener.address() as AddressInfo).port}/d`
}

/** Starts a server that sends `head`, and then endless bytes, as soon as a client connects. */
async function endlessGreeting(
  head: Buffer,
): Promise<{ readonly port: number; readonly sent: () => number }> {
  const sockets: Socket[] = []
  const listener = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.write(head)
    forever(socket, Buffer.alloc(65_536))
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  const { port } = listener.address() as AddressInfo
  return { port, sent: () => sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0) }
}

function forever(socket: Socket, bytes: Buffer): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(bytes));
    if (!socket.destroyed) socket.once('drain', more)
  }
  more()
}

describe('a server that only speaks like PostgreSQL', () => {
  test.each<[string, Partial<ReadLimits>, (socket: Socket) => void, RegExp]>([
    [
      'sends rows without an end',
      { rows: 5_000 },
      (socket) => forever(socket, Buffer.concat([message('T', COLUMN), ...Array(100).fill(ROW)])),
      /more than 5000 rows/,
    ],
    [
      'sends one row that is larger than everything may be',
      { bytes: 2_000_000 },
      (socket) => {
        socket.write(Buffer.concat([message('T', COLUMN), message('D', Buffer.alloc(0), 2 ** 30)]))
        forever(socket, Buffer.alloc(65_536))
      },
      /sends more than 8000000 bytes/,
    ],
    [
      'sends one row that is larger than a message may be',
      {},
      (socket) => {
        socket.write(Buffer.concat([message('T', COLUMN), message('D', Buffer.alloc(0), 2 ** 31 - 5)]))
        forever(socket, Buffer.alloc(65_536))
      },
      /sends a message of more than 67108864 bytes/,
    ],
    ['does not respond', { ms: 100 }, () => {}, /reading the table "users" took longer than 0.1 s/],
  ])('a source that imitates PostgreSQL is abandoned where it %s', async (_, bounds, answer, sentence) => {
    const source = await opened(await server(answer), bounds)
    await expect(source.rows('users', ['id'])).rejects.toThrow(sentence)
  })
})

describe('a server that greets without an end', () => {
  const SENTENCE = 'its server sends more than 65536 bytes before it accepts the user'

  test('an import from a PostgreSQL server that sends an endless greeting is abandoned', async () => {
    const { port, sent } = await endlessGreeting(message('R', Buffer.alloc(0), 2 ** 31 - 5))
    await expect(
      openPostgresSource(`postgres://u@127.0.0.1:${port}/d`, SOURCE_READERS.postgres),
    ).rejects.toThrow(SENTENCE)
    expect(sent()).toBeLessThan(100 * 2 ** 20)
  })

  test('an import from a MySQL server that sends an endless greeting is abandoned', async () => {
    // The greeting of protocol 10 in packets of the maximum length, which continue each other.
    const { port, sent } = await endlessGreeting(Buffer.from([0xff, 0xff, 0xff, 0, 10]))
    const place = mysqlAddress(`mysql://u@127.0.0.1:${port}/d`)
    if (!place) throw new Error('this is an address of MySQL')
    await expect(openMysqlSource(place)).rejects.toThrow(SENTENCE)
    expect(sent()).toBeLessThan(100 * 2 ** 20)
  })
})

describe('a server that asks for the password in clear over an unencrypted connection', () => {
  const SENTENCE = /asks for the password in clear, and the connection is not encrypted.*--insecure/

  /** A server that sends these bytes once a client has sent anything, or at once; and what it received. */
  async function asking(greeting: Buffer | undefined, question: Buffer) {
    const received: Buffer[] = []
    const listening = createServer((socket) => {
      socket.on('error', () => {})
      if (greeting) socket.write(greeting)
      socket.on('data', (bytes: Buffer) => {
        // The question follows what the client sends first, and nothing else.
        if (received.push(bytes) === 1) socket.write(question)
        else socket.end()
      })
    }).listen(0, '127.0.0.1')
    await once(listening, 'listening')
    onTestFinished(() => void listening.close())
    const { port } = listening.address() as AddressInfo
    return { port, hasPassword: () => Buffer.concat(received).includes('the-secret') }
  }

  const CLEARTEXT = message('R', Buffer.from([0, 0, 0, 3]))
  test.each([false, true])('PostgreSQL gets it only with --insecure: %s', async (sendsClearPassword) => {
    const { port, hasPassword } = await asking(undefined, CLEARTEXT)
    const opening = openPostgresSource(
      `postgres://u:the-secret@127.0.0.1:${port}/d`,
      SOURCE_READERS.postgres,
      {
        sendsClearPassword,
      },
    )
    const error = await opening.then(() => '', String)
    expect(hasPassword()).toBe(sendsClearPassword)
    if (!sendsClearPassword) expect(error).toMatch(SENTENCE)
  })

  /** The greeting of protocol 10, with the plugin `mysql_native_password`. */
  const GREETING = packet(
    0,
    Buffer.concat([
      Buffer.from('\n8.0.0\0'),
      Buffer.from([1, 0, 0, 0]),
      Buffer.from('12345678\0'),
      // Capabilities: protocol 4.1, secure connection, authentication by plugins.
      Buffer.from([0x00, 0x82, 0x21, 2, 0, 0x08, 0x00, 21]),
      Buffer.alloc(10),
      Buffer.from('123456789012\0mysql_native_password\0'),
    ]),
  )
  const SWITCH = packet(2, Buffer.from('\xfemysql_clear_password\0', 'latin1'))
  test.each([false, true])('MySQL gets it only with --insecure: %s', async (sendsClearPassword) => {
    const { port, hasPassword } = await asking(GREETING, SWITCH)
    const place = mysqlAddress(`mysql://u:the-secret@127.0.0.1:${port}/d`)
    if (!place) throw new Error('this is an address of MySQL')
    const error = await openMysqlSource(place, { sendsClearPassword }).then(() => '', String)
    expect(hasPassword()).toBe(sendsClearPassword)
    if (!sendsClearPassword) expect(error).toMatch(SENTENCE)
  })
})

/** A packet of MySQL with this number. */
function packet(number: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([payload.length & 0xff, payload.length >>> 8, 0, number]), payload])
}

test('an imported text with bytes that are not UTF-8 is refused, even if PostgreSQL sends it', async () => {
  const row = message('D', Buffer.from([0, 1, 0, 0, 0, 2, 0x61, 0xff]))
  const place = await server((socket) =>
    socket.write(Buffer.concat([message('T', COLUMN), row, message('C', Buffer.from('SELECT 1\0')), READY])),
  )
  const [first] = await (await opened(place)).rows('users', ['id'])
  expect(() => new RowReader(first ?? {}).text('id')).toThrow('id: expected a text in UTF-8')
})
