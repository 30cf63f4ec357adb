import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import {
  commandOn,
  GATEWAY_STATES,
  inGatewayState,
  type Outcome,
  SECRET,
  untilItRuns,
} from '../fixtures/command.ts'
import { plainConfiguration, ROOT } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')), {
    env: { GATEWAY_SECRET: SECRET },
  })
  const stored = {
    name: 'spare',
    type: 1,
    key: 'upstream-key-of-spare',
    base_url: fixture.upstream.baseUrl('spare'),
    models: 'm',
    priority: 5,
  }
  const made = await call(
    fixture.gateway.url,
    { mode: 'single', channel: stored },
    { path: '/api/channel/', headers: { authorization: ROOT.access_token, 'gateway-user': '1' } },
  )
  if (!made.text.includes('"success":true')) throw new Error(`the channel was not created: ${made.text}`)
})
afterAll(() => fixture?.close())

const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'channel', ...args)

/** The lane that the next call goes to. */
async function laneOfCall(): Promise<string[]> {
  await untilItRuns(fixture.gateway)
  const { upstream } = fixture
  for (const lane of ['m', 'spare']) upstream.forget(lane)
  expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  return ['m', 'spare'].filter((lane) => upstream.received(lane).length > 0)
}

describe.each(GATEWAY_STATES)('sluice channel, %s', (manner) => {
  const during = <T>(work: () => Promise<T>): Promise<T> => inGatewayState(manner, fixture.gateway, work)

  test('sluice channel list shows all channels and whether gateway.yaml or HTTP manages them, without their keys', async () => {
    const { code, out, err } = await during(() => run('list'))
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^NAME .* MANAGED BY\nspare .* HTTP\nm .* gateway\.yaml\n$/)
    expect(out).not.toContain('upstream-key')
    const isRunning = manner === 'while the gateway runs'
    expect(out).toMatch(isRunning ? /^spare +\S+ +enabled +works /m : /^spare +\S+ +enabled +unknown /m)
    const { out: json } = await during(() => run('list', '--json'))
    expect(JSON.parse(json)).toMatchObject([
      {
        name: 'spare',
        status: 1,
        key: '',
        managed: false,
        health: isRunning ? { state: 'works', cause: null } : null,
      },
      { name: 'm', status: 1, key: '', managed: true, managed_by: 'gateway.yaml' },
    ])
  })

  test('sluice channel disables a stored channel from the next call, and enables it again', async () => {
    expect(await laneOfCall()).toEqual(['spare'])
    expect((await during(() => run('disable', 'spare'))).out).toBe(
      'The channel "spare" is used for no further call.\n',
    )
    expect(await laneOfCall()).toEqual(['m'])
    expect((await during(() => run('list'))).out).toMatch(/^spare .* disabled .*$/m)
    const { out } = await during(() => run('enable', 'spare', '--json'))
    expect(JSON.parse(out)).toMatchObject({ name: 'spare', status: 1 })
    expect(await laneOfCall()).toEqual(['spare'])
  })

  test('sluice channel refuses to enable or disable a channel of gateway.yaml, or one that does not exist', async () => {
    expect(await during(() => run('disable', 'm'))).toMatchObject({
      code: 1,
      out: '',
      err: 'sluice: the channel "m" is declared in gateway.yaml, and can be changed there alone\n',
    })
    expect(await during(() => run('enable', 'nowhere'))).toMatchObject({
      code: 1,
      err: 'sluice: there is no channel "nowhere": "sluice channel list" shows them\n',
    })
  })

  test('sluice channel test calls a stored or declared channel, with the given model', async () => {
    const { upstream } = fixture
    for (const lane of ['m', 'spare']) {
      upstream.script(lane, { kind: 'whole' })
      const { code, out } = await during(() => run('test', lane, '--model', 'm'))
      expect(code).toBe(0)
      expect(out).toMatch(new RegExp(`^The channel "${lane}" has answered in [\\d.]+ s\\.\\n$`))
      const { headers, text } = upstream.only(lane)
      expect(headers.authorization).toBe(`Bearer upstream-key-of-${lane}`)
      expect(JSON.parse(text)).toMatchObject({ model: 'm' })
    }
    upstream.script('m', { kind: 'status', status: 500, body: errorBody('out of order') })
    const { code, err } = await during(() => run('test', 'm'))
    expect(code).toBe(1)
    expect(err).toMatch(
      /^sluice: the channel "m" failed after [\d.]+ s: the upstream answered 500: out of order\n$/,
    )
    const failed = await during(() => run('test', 'm', '--json'))
    expect(failed).toMatchObject({ code: 1, err: '' })
    expect(failed.json()).toMatchObject({ channel: 'm', success: false })
    const isRunning = manner === 'while the gateway runs'
    expect((await during(() => run('list'))).out).toMatch(
      isRunning ? /^m +\S+ +enabled +failing server_error /m : /^m +\S+ +enabled +unknown /m,
    )
    upstream.script('m', { kind: 'whole' })
  })
})
