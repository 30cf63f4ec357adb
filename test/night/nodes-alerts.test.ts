import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { errorBody, usageText } from '../fixtures/behaviour.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const DAY_MS = 86_400_000
const FIVE_DOLLARS = 2_500_000
interface Ending {
  readonly model: string
  readonly shutdown_date: string | null
}

const NODES = [0, 1, 2]
const BOB = user(3, 'bob', [token('bob')], { budget: 10_000, budget_period: 'month' })
const BOBS = { subject: 'user', id: 3, name: 'bob', budget: 10_000, budget_period: 'month' }

describe.each(SHARED)('alerts of three nodes on $name', (engine) => {
  test('an event that several nodes have seen is sent to the alert receivers once', async () => {
    const told = await startAlertReceiver()
    onTestFinished(() => told.stop())
    const clock = dateClock()
    const types = (): string[] => told.received.map(({ type }) => type)
    const events = ['budget.80', 'budget.100', 'quota.low', 'channel.resting', 'channel.back']
    const { upstream, chat } = await setNodes(
      engine,
      NODES.length,
      (lanes) => ({
        ...plainConfiguration(lanes.baseUrl('m')),
        users: [ROOT, user(2, 'ann', [token('ann')], { quota: FIVE_DOLLARS + 60 }), BOB],
        alerts: [told.declared(...events)],
      }),
      { env: clock.env },
    )

    // The third charge uses the budget up to nine tenths, the fourth beyond its amount.
    upstream.script('m', { kind: 'whole', usage: usageText(2_980, 5) })
    for (const node of NODES) expect((await chat(node, 'bob', ask('m', { max_tokens: 5 }))).status).toBe(200)
    await told.atLeast(1)
    expect((await chat(0, 'bob', ask('m', { max_tokens: 5 }))).status).toBe(200)
    await told.atLeast(2)
    expect(types()).toEqual(['budget.80', 'budget.100'])
    expect(told.received.map(({ data }) => data)).toMatchObject([
      { ...BOBS, budget_used: 9_000 },
      { ...BOBS, budget_used: 12_000 },
    ])

    // With the third charge, the user falls below the threshold.
    upstream.script('m', { kind: 'whole' })
    for (const node of NODES) expect((await chat(node, 'ann', ask('m'))).status).toBe(200)
    await told.atLeast(3)
    expect(types()).toEqual(events.slice(0, 3))

    upstream.script('m', { kind: 'status', status: 500, body: errorBody('out of order') })
    for (const node of NODES) for (let calls = 0; calls < 5; calls += 1) await chat(node, 'ann', ask('m'))
    await told.atLeast(4)
    expect(types()).toEqual(events.slice(0, 4))

    // The only channel is used in its cooldown, and the first response closes its circuit.
    upstream.script('m', { kind: 'whole' })
    for (const node of NODES)
      await expect.poll(async () => (await chat(node, 'ann', ask('m'))).status).toBe(200)
    clock.move(61)
    await told.atLeast(5)
    expect(types()).toEqual(events)
    expect(told.received.every(({ isSigned }) => isSigned)).toBe(true)
    expect(new Set(told.received.map(({ id }) => id)).size).toBe(events.length)
  })

  test('alert receivers are informed once of a budget for which each of several nodes has refused a call', async () => {
    const told = await startAlertReceiver()
    onTestFinished(() => told.stop())
    const { chat } = await setNodes(engine, NODES.length, (lanes) => ({
      ...plainConfiguration(lanes.baseUrl('m')),
      users: [ROOT, user(2, 'ann', [token('ann')], { quota: FIVE_DOLLARS }), BOB],
      alerts: [told.declared('budget.80', 'budget.100', 'quota.low')],
    }))
    await Promise.all(
      NODES.map(async (node) => {
        const refused = await chat(node, 'bob', ask('m', { max_tokens: 5_000 }))
        expect([refused.status, refused.json().error.code]).toEqual([403, 'budget_exceeded'])
      }),
    )
    await told.atLeast(2)
    // When a later event arrives, there are no others.
    expect((await chat(0, 'ann', ask('m'))).status).toBe(200)
    await told.atLeast(3)
    const types = told.received.map(({ type }) => type)
    expect(types.toSorted()).toEqual(['budget.100', 'budget.80', 'quota.low'])
    for (const { type, data } of told.received)
      if (type !== 'quota.low') expect(data).toMatchObject({ ...BOBS, budget_used: 0 })
  })

  test("alert receivers are informed of a model's end once for each threshold, although each node has read it and restarts", async () => {
    const told = await startAlertReceiver()
    onTestFinished(() => told.stop())
    const clock = dateClock()
    const end = Math.floor(Date.now() / DAY_MS) * DAY_MS + 70 * DAY_MS
    const shutdown = new Date(end).toISOString().slice(0, 10)
    const moveTo = (days: number): void => clock.moveTo(end - days * DAY_MS + 60_000)
    const { upstream, gateways, database } = await setNodes(
      engine,
      2,
      (lanes) => {
        const body = JSON.stringify({ data: [{ id: 'm', shutdown_date: shutdown }] })
        lanes.script('m', { kind: 'status', status: 200, body })
        return {
          ...plainConfiguration(lanes.baseUrl('m')),
          options: { model_dates: true },
          alerts: [told.declared('model.ending')],
        }
      },
      { env: clock.env },
    )
    await upstream.receivedAtLeast('m', 2)
    // Both nodes have the end, which is stored once.
    const endAt = async (node: number) =>
      (await manage<Ending[]>(gateways[node]?.url ?? '', AS_ROOT, 'GET /api/models')).data.find(
        ({ model }) => model === 'm',
      )?.shutdown_date
    for (const node of [0, 1]) await expect.poll(() => endAt(node)).toBe(shutdown)
    expect(await database.sql('select model, ends_on from model_ends')).toEqual([
      { model: 'm', ends_on: shutdown },
    ])
    const days = () => told.received.map(({ data }) => (data as { days: number }).days)
    for (const [at, passed] of [60, 30, 7].entries()) {
      moveTo(passed)
      await told.atLeast(at + 1)
    }
    await Promise.all(gateways.map((gateway) => gateway.restart()))
    moveTo(1)
    await told.atLeast(4)
    expect(days()).toEqual([60, 30, 7, 1])
    expect(new Set(told.received.map(({ id }) => id)).size).toBe(4)
    expect(told.received.map(({ type }) => type)).toEqual(Array.from({ length: 4 }, () => 'model.ending'))
  })
})
