import { expect, test } from 'vitest'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'

const DAY_S = 86_400
const DAY_MS = DAY_S * 1000
const IN_TIME = { timeout: 30_000 }

test('alert receivers are informed once each 60, 30, 7 and 1 days before a model is shut down, even after restarts', async () => {
  const receiver = await startAlertReceiver()
  const clock = dateClock()
  const end = Math.floor(Date.now() / DAY_MS) * DAY_MS + 70 * DAY_MS
  const shutdown = new Date(end).toISOString().slice(0, 10)
  // The moment at which this number of days is left, and a minute more or less.
  const moveTo = (days: number, minutes: number): void => clock.moveTo(end - days * DAY_MS + minutes * 60_000)
  const body = JSON.stringify({ data: [{ id: 'm', shutdown_date: shutdown }] })
  const fixture = await startFixture(
    (upstream) => {
      upstream.script('m', { kind: 'status', status: 200, body })
      const plain = plainConfiguration(upstream.baseUrl('m'))
      return {
        ...plain,
        options: { model_dates: true },
        models: { m: { ...(plain.models['m'] as object), successor: 'heir' } },
        alerts: [receiver.declared('model.ending')],
      }
    },
    { env: clock.env },
  )
  const told = () => receiver.received.map(({ data }) => (data as { days: number }).days)
  try {
    await fixture.upstream.receivedAtLeast('m', 1)
    moveTo(60, -1)
    await fixture.gateway.restart()
    moveTo(60, 1)
    await expect.poll(told, IN_TIME).toEqual([60])
    expect(receiver.received[0]).toMatchObject({
      type: 'model.ending',
      isSigned: true,
      data: { model: 'm', shutdown_date: shutdown, days: 60, successor: 'heir' },
    })
    await fixture.gateway.restart()
    moveTo(30, 1)
    await expect.poll(told, IN_TIME).toEqual([60, 30])
    // An end is looked at on each start: the threshold of 7 days passes while the gateway is stopped.
    await fixture.gateway.stop()
    moveTo(5, 0)
    await fixture.gateway.restart()
    await expect.poll(told, IN_TIME).toEqual([60, 30, 5])
    moveTo(1, 1)
    await expect.poll(told, IN_TIME).toEqual([60, 30, 5, 1])
    moveTo(0, 1)
    await fixture.gateway.restart()
    await fixture.gateway.restart()
    expect(told()).toEqual([60, 30, 5, 1])
  } finally {
    await fixture.close()
    await receiver.stop()
  }
}, 180_000)

test("alert receivers get one alert of a model's shutdown that becomes known after a threshold, such as 30 days, has passed", async () => {
  const receiver = await startAlertReceiver()
  const end = new Date(Date.now() + 20 * DAY_MS).toISOString().slice(0, 10)
  const days = Math.ceil((Date.parse(end) - Date.now()) / DAY_MS)
  const fixture = await startFixture((upstream) => {
    const body = JSON.stringify({ data: [{ id: 'm', shutdown_date: end }] })
    upstream.script('m', { kind: 'status', status: 200, body })
    return {
      ...plainConfiguration(upstream.baseUrl('m')),
      options: { model_dates: true },
      alerts: [receiver.declared('model.ending')],
    }
  })
  try {
    await receiver.atLeast(1)
    await fixture.gateway.restart()
    await fixture.upstream.receivedAtLeast('m', 2)
    expect(receiver.received).toHaveLength(1)
    expect(receiver.received[0]?.data).toEqual({ model: 'm', shutdown_date: end, days, successor: null })
  } finally {
    await fixture.close()
    await receiver.stop()
  }
}, 120_000)
