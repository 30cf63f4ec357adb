import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import type { RowStore } from '../store.ts'

const NOW = 1_760_000_000_000
const ONE = { tag: 'one', types: ['channel.resting', 'channel.back'] } as const
const TWO = { tag: 'two', types: ['channel.back', 'gateway.overloaded', 'quota.low'] } as const

const spread = (store: RowStore, node = 'a', nowMs = NOW): Promise<number | null> =>
  store.write('assignAlerts', { node, nowMs, untilMs: nowMs + 100, targets: [ONE, TWO], limit: 50 })
const claim = (store: RowStore, tag: string, node = 'a', nowMs = NOW) =>
  store.write('claimAlerts', { node, nowMs, lostMs: nowMs + 1_000, tag, limit: 50 })
const typesOf = async (store: RowStore, tag: string): Promise<string[]> =>
  (await claim(store, tag)).map(({ type, data }) => `${type} ${data}`).toSorted()
const report = (store: RowStore, channel: string, nowMs: number, untilMs: number): Promise<void> =>
  store.write('reportConditions', { nowMs, opened: [channel], backAtMs: untilMs, overload: undefined })
const setQuota = (store: RowStore, userId: number, value: number): Promise<unknown> =>
  store.write('changeUser', { userId, quota: { mode: 'override', value, maxQuota: 1e12 } })
const LOW = [{ type: 'quota.low', threshold: 500 }] as const
const overload = { reason: 'too many', untilMs: NOW + 300 }

describe.each(ENGINES)('the outbox of alerts on $name', (engine) => {
  test('the outbox of alerts has each event once for each receiver that subscribes to its type', async () => {
    const { store } = await openedRows(engine)
    await store.write('reportConditions', { nowMs: NOW, opened: ['c'], backAtMs: NOW + 1, overload })
    await store.write('endConditions', { nowMs: NOW + 1, channels: ['c'] })
    expect(await spread(store)).toBe(3)
    expect(await spread(store)).toBe(0)
    const back = 'channel.back {"channel":"c"}'
    expect(await typesOf(store, 'one')).toEqual([back, 'channel.resting {"channel":"c"}'])
    expect(await typesOf(store, 'two')).toEqual([back, 'gateway.overloaded {"reason":"too many"}'])
  })

  test('the delivery of an alert is assigned to one node, and again if that attempt was lost or postponed', async () => {
    const { store } = await openedRows(engine)
    await report(store, 'c', NOW, NOW + 1)
    await spread(store)
    const [first] = await claim(store, 'one')
    expect(first).toMatchObject({ attempts: 1, firstMs: NOW, createdMs: NOW })
    const id = first?.id ?? ''
    expect(await claim(store, 'one', 'a', NOW + 999)).toEqual([])
    expect(await claim(store, 'one', 'a', NOW + 1_000)).toEqual([{ ...first, attempts: 2 }])
    await store.write('recordAlertResults', { tag: 'one', over: [], failed: [{ id, dueMs: NOW + 1_500 }] })
    expect(await claim(store, 'one', 'a', NOW + 1_499)).toEqual([])
    expect(await claim(store, 'one', 'a', NOW + 1_500)).toHaveLength(1)
    await store.write('recordAlertResults', { tag: 'one', over: [id], failed: [] })
    expect(await claim(store, 'one', 'a', NOW + 99_999)).toEqual([])
  })

  test('a single node delivers the alerts of the outbox, and another one takes over once it has been silent for a while', async () => {
    const { store } = await openedRows(engine)
    await report(store, 'c', NOW, NOW + 1_000)
    expect(await spread(store)).toBe(1)
    const input = { nowMs: NOW + 99, tags: ['one'] }
    expect(await store.read('findPendingAlerts', { ...input, node: 'b' })).toMatchObject({
      isSenderElsewhere: true,
    })
    expect(await store.read('findPendingAlerts', { ...input, node: 'a' })).toEqual({
      hasUnassigned: false,
      due: ['one'],
      isConditionOver: false,
      isSenderElsewhere: false,
    })
    expect(await spread(store, 'b', NOW + 99)).toBeNull()
    expect(await claim(store, 'one', 'b', NOW + 99)).toEqual([])
    expect(await spread(store, 'b', NOW + 100)).toBe(0)
    expect(await claim(store, 'one', 'a', NOW + 101)).toEqual([])
    expect(await claim(store, 'one', 'b', NOW + 101)).toHaveLength(1)
  })

  test('the outbox of alerts deletes the events of receivers that were removed', async () => {
    const { store, database } = await openedRows(engine)
    await report(store, 'c', NOW, NOW + 1)
    await store.write('endConditions', { nowMs: NOW + 1, channels: ['c'] })
    await spread(store)
    await store.write('subscribeAlerts', { tags: ['two'], thresholds: [] })
    expect(await database.sql('select distinct target from alert_outbox')).toEqual([{ target: 'two' }])
    await store.write('subscribeAlerts', { tags: [], thresholds: [] })
    expect(await database.sql('select * from alert_outbox')).toEqual([])
  })
})

describe.each(ENGINES)('conditions on $name', (engine) => {
  test('one alert is sent when several nodes report a condition of a channel, and another once no node reports it any more', async () => {
    const { store } = await openedRows(engine)
    await report(store, 'c', NOW, NOW + 60)
    await report(store, 'c', NOW + 10, NOW + 70)
    // A node whose clock is behind does not shorten the condition.
    await report(store, 'c', NOW, NOW + 20)
    await store.write('endConditions', { nowMs: NOW + 69, channels: ['c'] })
    // The condition is over, but was reported again before a node noticed that.
    await report(store, 'c', NOW + 75, NOW + 80)
    await spread(store)
    expect(await typesOf(store, 'one')).toEqual(['channel.resting {"channel":"c"}'])
    const work = await store.read('findPendingAlerts', { node: 'a', nowMs: NOW + 80, tags: [] })
    expect(work.isConditionOver).toBe(true)
    await store.write('endConditions', { nowMs: NOW + 80, channels: ['c'] })
    await store.write('endConditions', { nowMs: NOW + 80, channels: ['c'] })
    await spread(store)
    expect(await typesOf(store, 'one')).toEqual(['channel.back {"channel":"c"}'])
  })

  test('no alert is sent when an overload ends, or when the condition of a removed channel ends', async () => {
    const { store } = await openedRows(engine)
    const reported = { nowMs: NOW, opened: ['gone'], backAtMs: NOW + 1, overload }
    await store.write('reportConditions', reported)
    await store.write('reportConditions', reported)
    expect(await spread(store)).toBe(2)
    await store.write('endConditions', { nowMs: NOW + 1_000, channels: [] })
    expect(await spread(store, 'a', NOW + 1)).toBe(0)
    await store.write('reportConditions', { ...reported, opened: [] })
    expect(await spread(store, 'a', NOW + 2)).toBe(1)
  })
})

describe.each(ENGINES)('a quota that falls below the threshold on $name', (engine) => {
  const told = async (store: RowStore): Promise<unknown[]> => {
    await spread(store)
    return (await claim(store, 'two')).map(({ data }) => JSON.parse(data) as unknown)
  }

  test("an alert is sent once when a user's quota is low, and again only after it was at the threshold or above", async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const set = (value: number) => setQuota(store, userId, value)
    await set(1_000)
    await store.write('subscribeAlerts', { tags: ['two'], thresholds: LOW })
    expect(await store.read('hasAlertState')).toBe(true)
    await set(500)
    expect(await told(store)).toEqual([])
    await set(499)
    await set(100)
    const [event, ...more] = await told(store)
    expect(event).toMatchObject({ user_id: userId, quota: 499, threshold: 500 })
    expect(more).toEqual([])
    await set(499)
    expect(await told(store)).toEqual([])
    await set(500)
    await set(0)
    expect(await told(store)).toMatchObject([{ quota: 0 }])
  })

  test('no alert is sent for a low quota if no receiver subscribes to alerts of that type', async () => {
    const { store, userId, database } = await rowsWithAccount(engine)
    await store.write('subscribeAlerts', { tags: ['two'], thresholds: LOW })
    await setQuota(store, userId, 1_000)
    await store.write('subscribeAlerts', { tags: ['one'], thresholds: [] })
    await setQuota(store, userId, 1)
    expect(await database.sql('select * from alert_outbox')).toEqual([])
  })

  test('an alert for a low provider limit is sent once for all nodes, and again only after a node saw that enough was left', async () => {
    const { store } = await openedRows(engine)
    const none = { hadEnough: false, hasEnough: false }
    const data = { channel: 'c', model: 'm', kind: 'requests', remaining: 3, resets_at: null } as const
    const low = (isNew: boolean, nowMs: number) => ({ data, isNew, untilMs: nowMs + 60 })
    const alerted = async (nowMs: number, limit: object): Promise<number | null> => {
      const limits = [{ channel: 'c', model: 'm', ...none, ...limit }]
      await store.write('reportConditions', {
        nowMs,
        opened: [],
        backAtMs: nowMs,
        limits,
        overload: undefined,
      })
      await store.write('endConditions', { nowMs, channels: ['c'] })
      return spread(store)
    }
    expect(await alerted(NOW, { low: low(true, NOW) })).toBe(1)
    expect(await alerted(NOW, { low: low(true, NOW) })).toBe(0)
    expect(await alerted(NOW + 50, { low: low(false, NOW + 50) })).toBe(0)
    expect(await alerted(NOW + 100, { low: low(true, NOW + 100) })).toBe(0)
    expect(await alerted(NOW + 101, { hadEnough: true })).toBe(0)
    // A node that has not seen that there is enough does not continue the condition.
    expect(await alerted(NOW + 102, { low: low(false, NOW + 102) })).toBe(0)
    expect(await alerted(NOW + 103, { low: low(true, NOW + 103), hasEnough: true })).toBe(1)
    expect(await alerted(NOW + 104, { low: low(true, NOW + 104) })).toBe(1)
    expect(await alerted(NOW + 164, { low: low(true, NOW + 164) })).toBe(0)
    expect(await alerted(NOW + 224, {})).toBe(0)
    expect(await alerted(NOW + 225, { low: low(true, NOW + 225) })).toBe(1)
  })
})
