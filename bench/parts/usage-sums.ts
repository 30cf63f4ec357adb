import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import type { NewToken } from '../../src/domain/records/token.ts'
import type { SettledCall } from '../../src/domain/records/usage.ts'
import type { NewUser } from '../../src/domain/records/user.ts'
import { NO_USAGE } from '@sluice/wire/usage'
import type { Store } from '../../src/store/store.ts'
import { spread } from '../measuring/statistics.ts'

/**
 * Measures sums of usage on SQLite: CPU time of the writer for each of a million calls, and then the time of
 * queries for usage by time. `--against ../base` alternates with another checkout, and prints ratios.
 */
const { values: options } = parseArgs({
  options: { calls: { type: 'string', default: '1000000' }, against: { type: 'string' } },
})
const CALLS = Number(options.calls)
const USERS = 200
const KEYS = 1000
const LIVE_KEYS = 200
const LIVE_CALLS = 192_000
const DAYS = 90
const DAY_MS = 86_400_000
const COMMIT = 64
/** Number of calls that one side writes before the other side's turn. */
const TURN = 6400
const READS = 40
const SECRET = 'a secret of this bench alone'

const today = Math.floor(Date.now() / DAY_MS)
const endS = (today * DAY_MS) / 1000
const week = { from: endS - 7 * 86_400, to: endS, tz: 'Asia/Kolkata', step: 'hour' as const }
const period = { from: endS - DAYS * 86_400, to: endS, tz: 'UTC', step: 'day' as const }
const lastDays = { first: today - 30, last: today - 1 }

const USER: NewUser = {
  username: '',
  role: 1,
  status: 1,
  group: 'default',
  quota: 1e12,
  accessToken: null,
  created_time: 1,
}
const TOKEN: NewToken = {
  user_id: 0,
  name: '',
  key: '',
  status: 1,
  created_time: 1,
  expired_time: -1,
  remain_quota: 1e9,
  unlimited_quota: false,
  model_limits_enabled: false,
  model_limits: '',
  allow_ips: null,
  group: '',
  vendor_routes: '',
}

/** The modules of a checkout, with the types of this one. */
async function modulesOf(root: string) {
  const at = (path: string): Promise<unknown> => import(join(root, 'src', path))
  return {
    ...((await at('store/secrets.ts')) as typeof import('../../src/store/secrets.ts')),
    ...((await at('store/sqlite/open.ts')) as typeof import('../../src/store/sqlite/open.ts')),
    ...((await at('store/sqlite/connection.ts')) as typeof import('../../src/store/sqlite/connection.ts')),
    ...((await at(
      'store/sqlite/prepare-database.ts',
    )) as typeof import('../../src/store/sqlite/prepare-database.ts')),
    ...((await at('store/sqlite/write-batch.ts')) as typeof import('../../src/store/sqlite/write-batch.ts')),
    ...((await at(
      'management/usage/usage-series.ts',
    )) as typeof import('../../src/management/usage/usage-series.ts')),
  }
}

type Modules = Awaited<ReturnType<typeof modulesOf>>

/** A database of one checkout. */
class Side {
  readonly costs: number[] = []
  readonly #modules: Modules
  readonly #path: string

  constructor(modules: Modules, path: string) {
    this.#modules = modules
    this.#path = path
  }

  open(): Promise<Store> {
    const secrets = this.#modules.deriveSecrets(SECRET)
    return this.#modules.openSqliteStore({ path: this.#path, secrets, onCallingThread: true })
  }

  async addAccounts(): Promise<void> {
    const store = await this.open()
    for (let id = 1; id <= USERS; id += 1)
      await store.write('createUser', { ...USER, username: `user-${id}` })
    for (let id = 1; id <= KEYS; id += 1) {
      const token = { ...TOKEN, user_id: userOf(id), name: `key-${id}`, key: `key-${id}` }
      await store.write('createToken', token)
    }
    await store.close()
  }

  /** Opens the writer, which settles calls and sums them up. */
  async writer(callAt = callOf): Promise<{ settle(first: number): Promise<void>; close(): void }> {
    const { openForWriting, prepareDatabase, WriteBatches, deriveSecrets } = this.#modules
    const db = openForWriting(this.#path)
    await prepareDatabase(db, deriveSecrets(SECRET))
    const batches = new WriteBatches(db, deriveSecrets(SECRET))
    return {
      settle: async (first) => {
        const before = process.cpuUsage()
        for (let at = first; at < first + TURN; at += COMMIT) {
          const calls = Array.from({ length: COMMIT }, (_, index) => callAt(at + index))
          await batches.write(calls.map((call) => ['settle', call]))
        }
        // As the writer does about every second.
        while (batches.unsummed > 0) await batches.write([['sumUp', undefined]])
        const { user, system } = process.cpuUsage(before)
        this.costs.push((user + system) / TURN)
      },
      close: () => db.close(),
    }
  }

  series(store: Store, query: typeof week | typeof period, by: 'model' | 'token', filter: object) {
    const { usageSeries, seriesPeriodOf } = this.#modules
    return usageSeries({ store }, { period: seriesPeriodOf(query, Date.now()), filter, by })
  }
}

const userOf = (token: number): number => ((token - 1) % USERS) + 1

/** Each key uses two models, and each model is at three channels. */
function callOf(index: number): SettledCall {
  const token_id = ((index * 79) % KEYS) + 1
  const model = (token_id + (Math.floor(index / KEYS) % 2)) % 20
  const ended_ms = (today - DAYS) * DAY_MS + Math.floor((index / CALLS) * DAYS * DAY_MS)
  const time = ended_ms.toString(16).padStart(12, '0')
  return {
    id: `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${index.toString(16).padStart(12, '0')}`,
    user_id: userOf(token_id),
    token_id,
    quota: 1000 + (index % 777),
    reason: 'complete',
    delivered: true,
    ended_ms,
    usage: { ...NO_USAGE, input: 900 + (index % 50), output: 100 },
    model: `model-${model}`,
    requested_model: `model-${model}`,
    upstream_model: `model-${model}`,
    channel: `channel-${model * 3 + (Math.floor(index / KEYS / 2) % 3)}`,
    group: 'default',
    stream: true,
    price_version: 'v1',
    kind: 'chat',
    duration_ms: 500 + ((index * 37) % 4000),
    first_byte_ms: 200 + ((index * 13) % 700),
    budgets: '',
  }
}

/** Calls of one half hour, as in operation: each of 200 keys uses one model at one channel. */
function liveCallOf(index: number): SettledCall {
  const call = callOf(index)
  const token_id = (index % LIVE_KEYS) + 1
  const model = `model-${token_id % 20}`
  return {
    ...call,
    id: `live-${call.id}`,
    token_id,
    user_id: userOf(token_id),
    model,
    channel: `of-${model}`,
    ended_ms: today * DAY_MS,
  }
}

const ANSWERS: Readonly<Record<string, (side: Side, store: Store) => Promise<unknown>>> = {
  'totals of all': (_, store) => store.read('sumUsageDays', { filter: {}, days: {} }),
  'totals of a user': (_, store) => store.read('sumUsageDays', { filter: { user_id: 7 }, days: {} }),
  'totals of a user in a model': (_, store) =>
    store.read('sumUsageDays', { filter: { user_id: 7, model: 'model-7' }, days: {} }),
  'totals of a key name': (_, store) =>
    store.read('sumUsageDays', { filter: { token_name: 'key-7' }, days: {} }),
  'days of all': (_, store) => store.read('usageByDay', { filter: {}, days: lastDays }),
  'days of a user': (_, store) => store.read('usageByDay', { filter: { user_id: 7 }, days: lastDays }),
  'groups by key': (_, store) => store.read('usageGroups', { by: 'key', days: lastDays }),
  'series by model': (side, store) => side.series(store, period, 'model', {}),
  'series by key': (side, store) => side.series(store, period, 'token', {}),
  'series by key in a model': (side, store) => side.series(store, period, 'token', { model: 'model-7' }),
  'series of a user': (side, store) => side.series(store, period, 'model', { user_id: 7 }),
  'hours of a user': (side, store) => side.series(store, week, 'model', { user_id: 7 }),
  'hours by key': (side, store) => side.series(store, week, 'token', {}),
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
try {
  const roots = [
    resolve(import.meta.dirname, '../..'),
    ...(options.against ? [resolve(options.against)] : []),
  ]
  const sides: Side[] = []
  for (const root of roots) sides.push(new Side(await modulesOf(root), join(folder, `${sides.length}.db`)))
  for (const side of sides) await side.addAccounts()
  for (const [name, count, callAt] of [
    ['writer, one half hour, µs a call', LIVE_CALLS, liveCallOf],
    ['writer, 90 days, µs a call', CALLS, callOf],
  ] as const) {
    const writers = await Promise.all(sides.map((side) => side.writer(callAt)))
    for (let first = 0; first < count; first += TURN)
      for (const writer of inTurn(writers, first / TURN)) await writer.settle(first)
    for (const writer of writers) writer.close()
    print(
      name,
      sides.map(({ costs }) => costs.splice(0)),
    )
  }
  const stores = await Promise.all(sides.map((side) => side.open()))
  for (const [name, answer] of Object.entries(ANSWERS)) {
    const times = sides.map((): number[] => [])
    for (let round = 0; round < READS; round += 1)
      for (const index of inTurn([...sides.keys()], round)) {
        const start = performance.now()
        await answer(sides[index]!, stores[index]!)
        times[index]!.push(performance.now() - start)
      }
    print(`${name}, ms`, times)
  }
  for (const store of stores) await store.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function inTurn<Value>(values: readonly Value[], round: number): readonly Value[] {
  return round % 2 === 0 ? values : values.toReversed()
}

/** Prints minimum and median of each side, and the ratios of this one to the other. */
function print(name: string, [here = [], there]: readonly (readonly number[])[]): void {
  const median = (values: readonly number[]): number => spread(values)?.median ?? 0
  const shown = (values: readonly number[]): string =>
    `${Math.min(...values).toFixed(2)} / ${median(values).toFixed(2)}`
  const ratios = there
    ? `  × ${(Math.min(...here) / Math.min(...there)).toFixed(2)} / ${median(here.map((value, at) => value / there[at]!)).toFixed(2)}  of ${shown(there)}`
    : ''
  console.log(`${name.padEnd(32)} ${shown(here)}${ratios}`)
}
