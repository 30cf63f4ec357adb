import { expect, onTestFinished, test } from 'vitest'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { requestsLeft, startStatingProvider } from '../fixtures/stating-provider.ts'

test('receivers get one alert when all keys of a channel have less than 5 % of a limit left, and another after one had over 10 %', async () => {
  const told = await startAlertReceiver()
  onTestFinished(() => told.stop())
  const left: Record<string, number> = { 'key-one': 40, 'key-two': 60 }
  const provider = await startStatingProvider((key) => ({ headers: requestsLeft(left[key] ?? 0) }))
  const fixture = await startFixture(() => ({
    models: priced(['m']),
    channels: [channel('c', provider.url, { keys: ['key-one', 'key-two'], models: ['m'] })],
    users: [ROOT, user(2, 'ann', [token('ann')])],
    alerts: [told.declared('provider.limit')],
  }))
  onTestFinished(() => fixture.close())
  /** Both keys state what they have left. */
  const callBoth = async (one: number, two: number): Promise<void> => {
    Object.assign(left, { 'key-one': one, 'key-two': two })
    for (let calls = 0; calls < 2; calls += 1) expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  }
  const soonS = Math.ceil(Date.now() / 1_000) + 600
  await callBoth(40, 60)
  await callBoth(40, 49)
  await told.atLeast(1)
  await callBoth(30, 20)
  await callBoth(100, 20)
  await callBoth(30, 10)
  await callBoth(101, 4)
  await callBoth(5, 4)
  const statedByS = Math.ceil(Date.now() / 1_000) + 600
  await told.atLeast(2)
  expect(told.received.map(({ type, data, isSigned }) => ({ type, data, isSigned }))).toEqual(
    [49, 5].map((remaining) => ({
      type: 'provider.limit',
      isSigned: true,
      data: { channel: 'c', model: 'm', kind: 'requests', remaining, resets_at: expect.any(Number) },
    })),
  )
  for (const { data, text } of told.received) {
    const { resets_at: resetsAt } = data as { resets_at: number }
    expect(resetsAt).toBeGreaterThanOrEqual(soonS)
    expect(resetsAt).toBeLessThanOrEqual(statedByS)
    expect(text).not.toContain('key-')
  }
})
