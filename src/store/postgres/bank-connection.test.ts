import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BANKS } from '../../../test/ledger/bank-fixture.ts'
import { behindProxy } from '../../../test/stores/behind-proxy.ts'
import type { FaultProxy } from '../../../test/fixtures/fault-proxy.ts'
import { NodeNameTaken, StoreUnavailable } from '../store-unavailable.ts'
import { BankConnection } from './bank-connection.ts'

describe.each(BANKS)("the relay's connection to $name", (engine) => {
  async function connected(): Promise<{ proxy: FaultProxy; connection: BankConnection; place: string }> {
    const { place } = await engine.database()
    const { proxy, url } = await behindProxy(place)
    const connection = new BankConnection(url, { hasRole: false })
    onTestFinished(() => connection.close())
    expect(await connection.query('select 1 as one', [])).toEqual([{ one: 1 }])
    return { proxy, connection, place }
  }

  test.each<[string, (proxy: FaultProxy) => void]>([
    ['falls silent, and new ones are swallowed', (proxy) => proxy.silence({ kind: 'black hole' })],
    ['is closed, and new ones are swallowed', (proxy) => proxy.setFault({ kind: 'black hole' })],
    [
      'is closed, and new ones fall silent in the middle of their greeting',
      (proxy) => proxy.setFault({ kind: 'black hole', afterBytes: 20 }),
    ],
  ])('a PostgreSQL connection that %s is abandoned, and replaced when that is possible', async (_, spoil) => {
    const { proxy, connection } = await connected()
    spoil(proxy)
    await delay(50)
    await expect(connection.query('select 1 as one', [])).rejects.toBeInstanceOf(StoreUnavailable)
    proxy.setFault({ kind: 'pass' })
    // A busy machine may connect too late for one statement.
    await expect.poll(() => connection.query('select 1 as one', [])).toEqual([{ one: 1 }])
  })

  test('an idle PostgreSQL connection that became silent makes one statement fail, and no later one', async () => {
    const { proxy, connection } = await connected()
    proxy.silence({ kind: 'pass' })
    await expect(connection.query('select 1 as one', [])).rejects.toBeInstanceOf(StoreUnavailable)
    expect(await connection.query('select 1 as one', [])).toEqual([{ one: 1 }])
  })

  test('a connection to PostgreSQL waits for a statement that the server is still processing', async () => {
    const { proxy, connection, place } = await connected()
    const other = new BankConnection(place, { hasRole: false })
    onTestFinished(() => other.close())
    await other.query('select pg_advisory_lock(1)', [])
    const before = proxy.connections
    const answer = connection.query('select pg_advisory_lock(1)', [])
    // A probe has looked at the waiting statement.
    await expect.poll(() => proxy.connections).toBeGreaterThan(before)
    await other.query('select pg_advisory_unlock(1)', [])
    expect(await answer).toHaveLength(1)
  })

  describe('that has the name of a node', () => {
    const one = (connection: BankConnection): Promise<object[]> => connection.query('select 1 as one', [])
    const named = (url: string, node: string): BankConnection => {
      const connection = new BankConnection(url, { hasRole: false, node })
      onTestFinished(() => connection.close())
      return connection
    }

    test("a node's database connection is refused while another process uses the node's name, and accepted once it does not", async () => {
      const { place } = await engine.database()
      const first = named(place, 'a')
      const second = named(place, 'a')
      await one(first)
      await one(named(place, 'b'))
      await expect(one(second)).rejects.toBeInstanceOf(NodeNameTaken)
      await one(first)
      await first.close()
      await expect.poll(() => one(second).catch(() => [])).toHaveLength(1)
    })

    test('a node whose database connection became silent can use its name again while the server keeps the old session', async () => {
      const { proxy, url } = await behindProxy((await engine.database()).place)
      const connection = named(url, 'a')
      await one(connection)
      proxy.silence({ kind: 'pass' })
      await expect(one(connection)).rejects.toBeInstanceOf(StoreUnavailable)
      expect(await one(connection)).toHaveLength(1)
    })
  })
})
