import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { generalSums, sumsOfRows } from '../../../test/stores/general-sums.ts'
import { type Engine, ENGINES, rowsWithAccount, type TestDatabase } from '../../../test/stores/engines.ts'
import { newToken, SECRETS, settledCall } from '../../../test/stores/rows.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CACHE_BREAKS } from '../../domain/cache-break.ts'
import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { USAGE_COUNTS } from '../../domain/records/usage-counts.ts'
import { postgresBank } from '../postgres/bank.ts'
import { BankConnection } from '../postgres/bank-connection.ts'
import { openSqliteStore } from '../sqlite/open.ts'
import { firstCallIdAt } from '../usage-id.ts'
import { serializeForOutbox } from '../usage-row.ts'

const T0 = Date.UTC(2026, 2, 1)
const DAY_MS = 86_400_000

const anyCount = fc.oneof(fc.constant(0), fc.nat({ max: 2 ** 30 }))

const anyCall: fc.Arbitrary<Partial<SettledCall> & { token: number }> = fc.record({
  token: fc.constantFrom(1, 2),
  model: fc.constantFrom('m', 'n', 'a model'),
  channel: fc.constantFrom('c', ''),
  group: fc.constantFrom('default', 'vip'),
  service_tier: fc.constantFrom('', 'flex'),
  region: fc.constantFrom('', 'eu'),
  ended_ms: fc.integer({ min: T0, max: T0 + 2 * DAY_MS }),
  quota: fc.nat({ max: 2 ** 40 }),
  duration_ms: fc.nat({ max: 1_000_000 }),
  first_byte_ms: fc.option(fc.nat({ max: 60_000 })),
  delivered: fc.boolean(),
  reason: fc.constantFrom<SettledCall['reason']>(
    'complete',
    'estimated',
    'failed',
    'crash',
    'cut',
    'client_gone',
  ),
  cause: fc.constantFrom('', ...FAILURE_CAUSES),
  cache_saved: anyCount,
  cache_surcharge: anyCount,
  cache_break: fc.constantFrom('', ...CACHE_BREAKS),
  cache: fc.constantFrom('', 'hit'),
  hit_saved: anyCount,
  usage: fc.record(
    Object.fromEntries(Object.keys(USAGE_COUNTS).map((name) => [name, anyCount])),
  ) as unknown as fc.Arbitrary<SettledCall['usage']>,
})

/** How calls are settled on an engine: together, as one commit or one report. */
async function settler(
  { name }: Engine,
  { place }: TestDatabase,
): Promise<(calls: readonly SettledCall[]) => Promise<void>> {
  if (name === 'PostgreSQL') {
    const connection = new BankConnection(place, { hasRole: true })
    onTestFinished(() => connection.close())
    const bank = postgresBank(connection, 'a')
    return async (calls) => void (await bank.apply(calls.map(serializeForOutbox), []))
  }
  const store = await openSqliteStore({ path: place, secrets: SECRETS, onCallingThread: true })
  onTestFinished(() => store.close())
  return async (calls) => {
    await Promise.all(calls.map((call) => store.write('settle', call)))
    await store.read('usageSumsCoverage')
  }
}

describe.each(ENGINES)('sums of usage on $name', (engine) => {
  test('the sums of any calls are those of each call added to each kind; only sums without users and keys have latencies and causes', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const other = await store.write('createToken', newToken(userId, { name: 'other', key: 'k2' }))
    const settle = await settler(engine, database)
    const settled: SettledCall[] = []
    await fc.assert(
      fc.asyncProperty(fc.array(anyCall, { minLength: 1, maxLength: 12 }), async (given) => {
        const calls = given.map(({ token, ...of }, index) =>
          settledCall({ userId, tokenId: token === 1 ? 1 : other.id }, `id-${settled.length + index}`, of),
        )
        await settle(calls)
        settled.push(...calls)
        expect(sumsOfRows(await database.sql('select * from usage_sums'))).toEqual(generalSums(settled))
      }),
      { numRuns: lawRuns(60), endOnFailure: true },
    )
  })

  // `docs/api.md: Usage log`
  test('calls of which nothing was delivered are no requests, neither of a day nor of a part of one', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    const settle = await settler(engine, database)
    const ended: readonly Partial<SettledCall>[] = [
      { reason: 'complete', delivered: true },
      { reason: 'failed', delivered: false, first_byte_ms: null },
      ...(['client_gone', 'stopped', 'crash'] as const).flatMap((reason) => [
        { reason, delivered: true, first_byte_ms: null },
        { reason, delivered: false, first_byte_ms: null },
        { reason, delivered: false, first_byte_ms: 7 },
      ]),
    ]
    await settle(
      ended.map((of, at) =>
        settledCall({ userId, tokenId }, firstCallIdAt(T0 + at), { ...of, ended_ms: T0 + at }),
      ),
    )
    const all = { filter: {}, after: null, maxRows: 100 }
    const plan = { firstDay: T0 / DAY_MS, days: [0], moved: [], isExact: true }
    expect(await store.read('sumUsageDays', { filter: {}, days: {} })).toMatchObject({ requests: 4 })
    expect(await store.read('sumUsageScan', all)).toMatchObject({ totals: { requests: 4 } })
    expect(await store.read('callFacts', { ...all, plan, steps: 1 })).toMatchObject({
      steps: [{ answered: 4 }],
    })
  })
})
