import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type ChannelHealth, channelHealth } from '../fixtures/channel-health.ts'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { commandOn, SECRET } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'

/** `docs/operations.md: Alerts`, `docs/administration.md: Channel health`. */
const AS_ROOT = { id: ROOT.id, accessToken: ROOT.access_token }
const REVOKED: Behaviour = { kind: 'status', status: 401, body: errorBody('canary: this key was revoked') }
const NO_MONEY: Behaviour = { kind: 'status', status: 402, body: errorBody('canary: no money') }

test('a channel whose keys are all refused is failing with the cause, and receivers learn of it and of its return', async () => {
  const clock = dateClock()
  const told = await startAlertReceiver()
  onTestFinished(() => told.stop())
  const fixture = await startFixture(
    (upstream) => ({
      options: { public_url: 'https://ai.example.com' },
      models: priced(['m', 'n']),
      channels: [
        channel('dead', upstream.baseUrl('dead'), { models: ['m', 'n'], keys: ['one', 'two'], priority: 1 }),
        channel('spare', upstream.baseUrl('spare'), { models: ['m'] }),
        channel('poor', upstream.baseUrl('poor'), { models: ['n'] }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
      alerts: [told.declared('channel.no_key', 'channel.resting', 'channel.back')],
    }),
    { env: { ...clock.env, GATEWAY_SECRET: SECRET } },
  )
  onTestFinished(() => fixture.close())
  const { gateway, upstream } = fixture
  const healthOf = (name: string): Promise<ChannelHealth | undefined> => channelHealth(gateway.url, name)
  upstream.script('dead', REVOKED)
  expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  expect(await healthOf('dead')).toMatchObject({
    state: 'failing',
    condition: 'failing',
    cause: 'key_refused',
  })
  expect(await healthOf('spare')).toMatchObject({ state: 'works', cause: null })

  upstream.script('poor', NO_MONEY)
  expect((await fixture.chat('ann', ask('n'))).status).toBe(500)
  expect(await healthOf('poor')).toMatchObject({ state: 'failing', cause: 'account_fault' })
  const shell = await manage<{ troubled_channels: ChannelHealth[] }>(gateway.url, AS_ROOT, 'GET /api/console')
  expect(shell.data.troubled_channels).toMatchObject([
    { name: 'dead', state: 'failing', cause: 'key_refused' },
    { name: 'poor', state: 'failing', cause: 'account_fault' },
  ])

  const listed = await commandOn(gateway, 'channel', 'list')
  expect(listed.out).toMatch(/^dead .*failing key_refused .*$/m)
  expect(listed.out).toMatch(/^poor .*failing account_fault .*$/m)
  expect(listed.out).toMatch(/^spare .* works .*$/m)

  await told.atLeast(2)
  const events = told.received
    .map(({ type, data }) => ({ type, data: data as { channel: string } }))
    .toSorted((a, b) => (a.data.channel < b.data.channel ? -1 : 1))
  expect(events).toEqual([
    {
      type: 'channel.no_key',
      data: {
        channel: 'dead',
        cause: 'key_refused',
        status: 401,
        models: ['m', 'n'],
        calls_lost: expect.any(Number),
        url: expect.stringMatching(/^https:\/\/ai\.example\.com\/channels\/\d+$/),
      },
    },
    {
      type: 'channel.no_key',
      data: {
        channel: 'poor',
        cause: 'account_fault',
        status: 402,
        models: ['n'],
        calls_lost: 1,
        url: expect.any(String),
      },
    },
  ])
  expect(told.received.every(({ text }) => !text.includes('canary'))).toBe(true)

  // The key is used again because no other account serves the model.
  upstream.script('poor', { kind: 'whole' })
  upstream.script('dead', { kind: 'whole' })
  expect((await fixture.chat('ann', ask('n'))).status).toBe(200)
  await expect
    .poll(
      async () => (await healthOf('poor'))?.state === 'works' || (await healthOf('dead'))?.state === 'works',
    )
    .toBe(true)
  // The time after which a channel counts as recovered.
  clock.move(90)
  await expect.poll(() => told.received.map(({ type }) => type)).toContain('channel.back')
})
