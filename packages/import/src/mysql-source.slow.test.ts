import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  DATABASE,
  type MariadbServer,
  startMariadbServer,
  withoutMariadb,
} from '../../../test/fixtures/mariadb-server.ts'
import { familyDatabase } from '../../../test/stores/family-database.ts'
import { readOtherGateway } from './other-gateway.ts'
import type { MysqlAddress, SourceDatabase } from './source.ts'
import { openMysqlSource } from './mysql-source.ts'
import { READ_LIMITS, type ReadLimits } from './read-limits.ts'

async function opened(place: MysqlAddress, bounds: Partial<ReadLimits> = {}): Promise<SourceDatabase> {
  const source = await openMysqlSource(place, { limits: { ...READ_LIMITS, ...bounds } })
  onTestFinished(() => source.close())
  return source
}

describe.skipIf(withoutMariadb('the database of MariaDB that is imported'))('a source on MariaDB', () => {
  let server: MariadbServer
  let place: MysqlAddress
  beforeAll(async () => {
    server = await startMariadbServer()
    place = {
      host: '127.0.0.1',
      port: server.port,
      user: 'reader',
      password: 'p@ss word',
      database: DATABASE,
      tls: 'none',
    }
  })
  afterAll(() => server?.stop())

  test('an import reads a MariaDB source in its state at the opening, and writes nothing to it', async () => {
    const family = await familyDatabase('new-api', 'MariaDB', server)
    await family.insert('options', { key: 'é', value: '日本\u{1F600}' })
    const source = await opened(place)
    await family.insert('options', { key: 'later', value: 'v' })
    expect([...(await readOtherGateway(source)).options]).toEqual([['é', '日本\u{1F600}']])
  })

  test('an import does not read a MariaDB source if one of its tables is a view', async () => {
    const family = await familyDatabase('new-api', 'MariaDB', server)
    await family.sql('rename table users to people')
    await family.sql("create view users as select id, 'x' as username, sleep(1) as quota from people")
    await expect(readOtherGateway(await opened(place))).rejects.toThrow(
      '"users" is a view, and nothing but plain tables',
    )
  })

  test('an import reads a MariaDB source up to the maximum number of rows and bytes', async () => {
    const family = await familyDatabase('new-api', 'MariaDB', server)
    for (let n = 0; n < 60; n += 1) await family.insert('options', { key: `k${n}`, value: 'v'.repeat(2_000) })
    expect((await readOtherGateway(await opened(place, { rows: 60 }))).options.size).toBe(60)
    await expect(readOtherGateway(await opened(place, { rows: 59 }))).rejects.toThrow(
      'the table "options" has more than 59 rows',
    )
    await expect(readOtherGateway(await opened(place, { bytes: 100_000 }))).rejects.toThrow(
      /more than 100000 bytes/,
    )
  })

  test.each([
    ['a wrong password', { password: 'hidden' }, /the database refuses: Access denied/],
    ['another database', { database: 'nothing' }, /the database refuses: Access denied|Unknown database/],
    ['no server', { port: 1 }, /the database cannot be reached: .*ECONNREFUSED/],
    ['TLS where there is none', { tls: 'verified' }, /the database refuses: .*secure connection/],
  ] as const)(
    'a MariaDB source with %s is refused with a message that does not contain the password',
    async (_, change, sentence) => {
      const failure = await openMysqlSource({ ...place, ...change }).catch(String)
      expect(failure).toMatch(sentence)
      expect(failure).not.toMatch(/hidden|p@ss/)
    },
  )
})

test('an import from a MySQL server that does not answer is abandoned after the timeout', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as AddressInfo
  const place = { host: '127.0.0.1', port, user: 'a', password: '', database: 'x', tls: 'none' } as const
  await expect(openMysqlSource(place, { limits: { ...READ_LIMITS, ms: 100 } })).rejects.toThrow(
    'its server did not accept the user within 0.1 s',
  )
})
