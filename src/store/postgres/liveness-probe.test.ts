import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { behindProxy } from '../../../test/stores/behind-proxy.ts'
import type { FaultProxy } from '../../../test/fixtures/fault-proxy.ts'
import { type Engine, ENGINES } from '../../../test/stores/engines.ts'
import { SECRETS } from '../../../test/stores/rows.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { type ProbeTimeouts, TIMEOUTS_WHILE_IDLE, withLivenessProbe } from './liveness-probe.ts'
import { openPostgresStore, type SharedRows } from './open.ts'
import { connectionPool } from './pool.ts'

const HERE = ENGINES.filter(({ name }) => name === 'PostgreSQL')
/**
 * A generous maximum for the promised two seconds, for a busy machine; without a timeout the query would
 * hang.
 */
const PROMISED_MS = 20_000
/** The minimum milliseconds in which a dead connection is detected. */
const ONE_WAIT_MS = 1_500

/** Opens a store and runs queries, so that it has idle connections. */
async function storeBehindProxy(
  engine: Engine,
): Promise<{ proxy: FaultProxy; url: string; store: SharedRows }> {
  const { proxy, url } = await behindProxy((await engine.database()).place)
  const store = await openPostgresStore({ url, secrets: SECRETS })
  onTestFinished(() => store.close())
  await Promise.all([1, 2, 3].map(() => store.read('countUsers')))
  return { proxy, url, store }
}

interface Outcome {
  readonly error: unknown
  readonly ms: number
}

async function timed(call: () => Promise<unknown>): Promise<Outcome> {
  const start = performance.now()
  const error: unknown = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { error, ms: performance.now() - start }
}

function expectRefused({ error, ms }: Outcome): void {
  expect(error).toBeInstanceOf(StoreUnavailable)
  expect(String(error)).toMatch(/the database cannot be reached/)
  expect(ms).toBeLessThan(PROMISED_MS)
}

/** Expects that a response is given up while calls wait for it, and not while no call waits. */
async function expectPatienceWhileIdle(url: string, processID?: number): Promise<void> {
  const asked = (timeouts?: ProbeTimeouts) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const end = async (): Promise<void> => reject(new Error('Connection terminated'))
    const connection = { processID: processID ?? null, end }
    return { answer: withLivenessProbe(connection, url, promise, timeouts), resolve }
  }
  const patient = asked(TIMEOUTS_WHILE_IDLE)
  // Twice, so that the first probe of the other one would have failed, too.
  for (const _ of [1, 2]) await expect(asked().answer).rejects.toBeInstanceOf(StoreUnavailable)
  patient.resolve('answer')
  expect(await patient.answer).toBe('answer')
}

describe.each(HERE)('a call to an unreachable $name', (engine) => {
  test.each<[string, (proxy: FaultProxy) => void]>([
    ['swallows everything', (proxy) => proxy.setFault({ kind: 'black hole' })],
    ['breaks off at once', (proxy) => proxy.setFault({ kind: 'cut', afterBytes: 1 })],
    [
      'falls silent in the middle of its greeting',
      (proxy) => proxy.setFault({ kind: 'black hole', afterBytes: 20 }),
    ],
  ])(
    'database calls are refused within two seconds if the connection %s, and answered when it works again',
    async (_, spoil) => {
      const { proxy, store } = await storeBehindProxy(engine)
      spoil(proxy)
      await delay(50)
      for (const outcome of await Promise.all(
        Array.from({ length: 10 }, () => timed(() => store.read('countUsers'))),
      )) {
        expectRefused(outcome)
      }
      proxy.setFault({ kind: 'pass' })
      // A busy machine may connect too late for one operation.
      await expect.poll(() => store.read('countUsers')).toBe(0)
    },
  )

  test('a database operation is refused within two seconds if no PostgreSQL server listens', async () => {
    const { proxy, store } = await storeBehindProxy(engine)
    await proxy.stop()
    expectRefused(await timed(() => store.read('countUsers')))
  })

  test('a database operation is refused within two seconds if PostgreSQL is silent on open and new connections', async () => {
    const { proxy, url } = await behindProxy((await engine.database()).place)
    const pool = connectionPool(url)
    onTestFinished(() => pool.end())
    const client = await pool.connect()
    await client.query('begin', [])
    proxy.silence({ kind: 'black hole' })
    expectRefused(await timed(() => client.query('select 1', [])))
    // Later statements of the transaction fail without another wait; one of them may meet a halt of the machine.
    await expect
      .poll(async () => {
        const next = await timed(() => client.query('rollback', []))
        expectRefused(next)
        return next.ms
      })
      .toBeLessThan(ONE_WAIT_MS)
    client.release()
  })
})

describe.each(HERE)('on $name', (engine) => {
  test('after idle PostgreSQL connections became silent, one database operation is refused, and the next one succeeds in time', async () => {
    const { proxy, url, store } = await storeBehindProxy(engine)
    const waited = async (): Promise<number> => {
      await Promise.all([1, 2, 3].map(() => store.read('countUsers')))
      proxy.silence({ kind: 'pass' })
      expectRefused(await timed(() => store.read('countUsers')))
      const next = await timed(() => store.read('countUsers'))
      expect(next.error).toBeUndefined()
      const pool = connectionPool(url)
      onTestFinished(() => pool.end())
      const opening = await timed(() => pool.connect().then((client) => client.release()))
      return next.ms - opening.ms
    }
    // Again where the machine halted meanwhile: a wait that is always there is always too long.
    await expect.poll(waited).toBeLessThan(ONE_WAIT_MS)
  })

  test('a PostgreSQL connection that breaks between two statements fails only the next statement', async () => {
    const { proxy, url } = await behindProxy((await engine.database()).place)
    const pool = connectionPool(url)
    onTestFinished(() => pool.end())
    const client = await pool.connect()
    await client.query('begin', [])
    proxy.setFault({ kind: 'pass' })
    // On a busy machine the statement itself finds the break, and fails with another error.
    await delay(50)
    await expect(client.query('select 1', [])).rejects.toThrow(/connection error|terminated|ECONNRESET|EPIPE/)
    client.release()
    const another = await pool.connect()
    expect(await another.query('select 1 as one', [])).toMatchObject({ rows: [{ one: 1 }] })
    another.release()
  })

  test('a slow PostgreSQL server counts as unreachable while calls wait for its answer, and not while no call waits', async () => {
    const { proxy, url } = await behindProxy((await engine.database()).place)
    proxy.setFault({ kind: 'delay', delayMs: 900 })
    await expectPatienceWhileIdle(url)
  })

  test('the response of an idle PostgreSQL server is lost after a moment while calls wait for it, and may be late while no call waits', async () => {
    const { place } = await engine.database()
    const pool = connectionPool(place)
    onTestFinished(() => pool.end())
    const client = await pool.connect()
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid', [])
    client.release()
    await expectPatienceWhileIdle(place, rows[0]?.pid)
  })

  test('a starting gateway waits for a database lock of another node, even if the PostgreSQL server is slow', async () => {
    const { place } = await engine.database()
    const { proxy, url } = await behindProxy(place)
    await (await openPostgresStore({ url: place, secrets: SECRETS })).close()
    const other = connectionPool(place)
    onTestFinished(() => other.end())
    const client = await other.connect()
    await client.query('begin', [])
    await client.query('lock table store_identity in access exclusive mode', [])
    proxy.setFault({ kind: 'delay', delayMs: 900 })
    let hasFailed = false
    const opening = openPostgresStore({ url, secrets: SECRETS })
    opening.catch(() => (hasFailed = true))
    // The connection itself, and two probes for the waiting statement.
    await expect.poll(() => hasFailed || proxy.connections >= 3).toBe(true)
    await client.query('rollback', [])
    client.release()
    const store = await opening
    onTestFinished(() => store.close())
    expect(await store.read('countUsers')).toBe(0)
  })

  test('the liveness probe waits for a statement that the PostgreSQL server is still processing', async () => {
    const { proxy, url } = await behindProxy((await engine.database()).place)
    const pool = connectionPool(url)
    onTestFinished(() => pool.end())
    const client = await pool.connect()
    const other = await pool.connect()
    await other.query('select pg_advisory_lock(1)', [])
    const before = proxy.connections
    const answer = client.query('select pg_advisory_lock(1)', [])
    // Two probes have looked at the waiting statement.
    await expect.poll(() => proxy.connections).toBeGreaterThanOrEqual(before + 2)
    await other.query('select pg_advisory_unlock(1)', [])
    await answer
    for (const one of [client, other]) one.release()
  })
})
