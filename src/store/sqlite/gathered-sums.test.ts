import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import {
  newToken,
  settledCall,
  storeWithAccount,
  temporaryFolder,
  USAGE_OF_ALL_COUNTS,
} from '../../../test/stores/rows.ts'
import { kindIs } from '../../../test/stores/usage-sums-rows.ts'
import { CACHE_BREAKS } from '../../domain/cache-break.ts'
import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import { NO_USAGE } from '@sluice/wire/usage'
import type { Store } from '../store.ts'
import { HISTOGRAMS, NO_DIMENSION, USAGE_SUMS_KEY } from '../sum-kinds.ts'

// 2026-03-01T00:00:00Z is 20,513 days after 1970-01-01.
const MIDNIGHT_MS = Date.UTC(2026, 2, 1)
const DAY = 20_513
const NO_BREAKS = Object.fromEntries(CACHE_BREAKS.map((reason) => [`break_${reason}`, 0]))
const NO_CAUSES = Object.fromEntries(FAILURE_CAUSES.map((cause) => [`failed_${cause}`, 0]))

const CACHE_MONEY = { cache_saved: 18, cache_surcharge: 19, cache: 'hit', hit_saved: 20 } as const

/** The daily sums, once all calls are summed up, without the columns of latencies. */
async function daysIn(
  store: Pick<Store, 'read'>,
  path: string,
): Promise<Readonly<Record<string, unknown>>[]> {
  await store.read('usageSumsCoverage')
  const file = new DatabaseSync(path, { readOnly: true })
  const rows = file
    .prepare(`SELECT * FROM usage_sums WHERE ${kindIs('days')} ORDER BY ${USAGE_SUMS_KEY.join(', ')}`)
    .all()
  file.close()
  const others = new Set<string>(['kind', ...HISTOGRAMS])
  return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !others.has(name))))
}

test('settlements are summed up by the day of their end (UTC), user, token, model, channel, group, tier and region', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store, userId, tokenId, who } = await storeWithAccount(path)
  const call = (id: string, of: Parameters<typeof settledCall>[2]) =>
    store.write(
      'settle',
      settledCall(who, id, { ended_ms: MIDNIGHT_MS, usage: USAGE_OF_ALL_COUNTS, ...CACHE_MONEY, ...of }),
    )
  // Written in one commit and in several, these go to the same rows.
  await Promise.all([
    call('a', {}),
    call('b', { quota: 5, cache_break: 'key_moved' }),
    call('c', { ended_ms: MIDNIGHT_MS - 1 }),
  ])
  const nothing = {
    quota: 0,
    usage: NO_USAGE,
    cache_saved: 0,
    cache_surcharge: 0,
    cache: '',
    hit_saved: 0,
  } as const
  await call('d', { delivered: false, reason: 'failed', ...nothing })
  await call('e', { ended_ms: MIDNIGHT_MS + 86_399_999 })
  await call('f', { model: 'other', cache_break: 'provider' })
  await call('g', { channel: 'other' })
  await call('h', { group: 'other' })
  await call('i', { service_tier: 'fast', region: 'us' })
  const account = { user_id: userId, token_id: tokenId }
  const key = { ...NO_DIMENSION, ...account, model: 'm', channel: 'c', group_name: 'default' }
  const sums = (of: number, quota: number, failed = 0) => ({
    requests: of,
    failed,
    input_tokens: of,
    cache_read_tokens: 2 * of,
    cache_write_5m_tokens: 3 * of,
    cache_write_1h_tokens: 4 * of,
    cache_write_30m_tokens: 16 * of,
    cache_write_12h_tokens: 17 * of,
    output_tokens: 5 * of,
    reasoning_tokens: 6 * of,
    web_searches: 7 * of,
    audio_input_tokens: 8 * of,
    image_input_tokens: 9 * of,
    audio_output_tokens: 10 * of,
    image_output_tokens: 11 * of,
    seconds: 12 * of,
    characters: 13 * of,
    images: 14 * of,
    search_units: 15 * of,
    cache_saved: 18 * of,
    cache_surcharge: 19 * of,
    hits: of,
    hit_saved: 20 * of,
    quota,
    ...NO_CAUSES,
    ...NO_BREAKS,
    unanswered: failed,
  })
  expect(await daysIn(store, path)).toEqual([
    { start: DAY - 1, ...key, ...sums(1, 300) },
    // The calls a, b and e; d was not answered.
    { start: DAY, ...key, ...sums(3, 605, 1), break_key_moved: 1 },
    { start: DAY, ...key, service_tier: 'fast', region: 'us', ...sums(1, 300) },
    { start: DAY, ...key, group_name: 'other', ...sums(1, 300) },
    { start: DAY, ...key, channel: 'other', ...sums(1, 300) },
    { start: DAY, ...key, model: 'other', ...sums(1, 300), break_provider: 1 },
  ])
})

test('a settlement of a call that is written twice is counted once in the usage sums', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store, who } = await storeWithAccount(path)
  await Promise.all([
    store.write('settle', settledCall(who, 'a')),
    store.write('settle', settledCall(who, 'a')),
  ])
  await store.write('settle', settledCall(who, 'a'))
  expect(await daysIn(store, path)).toMatchObject([{ requests: 1, quota: 300 }])
})

test('the daily usage sums of a user and of a token add up to the amounts in their rows', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store, userId, who } = await storeWithAccount(path)
  const other = await store.write('createToken', newToken(userId, { name: 'other', key: 'k2' }))
  await Promise.all(
    Array.from({ length: 300 }, (_, index) =>
      store.write(
        'settle',
        settledCall(index % 3 === 0 ? { userId, tokenId: other.id } : who, `id-${index}`, {
          quota: index,
          delivered: index % 5 !== 0,
          ended_ms: MIDNIGHT_MS + index * 3_600_000,
        }),
      ),
    ),
  )
  const days = await daysIn(store, path)
  const user = await store.read('userByName', 'ada')
  expect(days.reduce((sum, row) => sum + (row['requests'] as number), 0)).toBe(user?.request_count)
  expect(days.reduce((sum, row) => sum + (row['quota'] as number), 0)).toBe(user?.used_quota)
  // 300 hours are 13 days, of two tokens each.
  expect(days).toHaveLength(26)
  expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
})
