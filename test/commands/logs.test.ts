import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { commandOn, GATEWAY_STATES, inGatewayState, type Outcome, SECRET } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

interface Row {
  readonly id: string
  readonly username: string
  readonly model_name: string
  readonly cause?: string
  readonly code?: string
}

let fixture: Fixture
const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, ...args)

beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      groups: { default: {}, sales: { ratio: 0.5, open: false, budget: 5_000_000, budget_period: 'month' } },
      models: priced(['m', 'broken']),
      options: { retries: 0 },
      channels: [
        channel('one', upstream.baseUrl('one'), { models: ['m'], groups: ['default', 'sales'] }),
        channel('two', upstream.baseUrl('two'), { models: ['broken'] }),
      ],
      users: [
        ROOT,
        user(2, 'ann', [token('a')]),
        user(3, 'bob', [token('b')], { group: 'sales' }),
        user(4, 'poor', [token('p')], { quota: 0 }),
      ],
    }),
    { env: { GATEWAY_SECRET: SECRET } },
  )
  fixture.upstream.script('two', { kind: 'status', status: 500, body: errorBody('out of order') })
  await fixture.chat('a', ask('m'))
  await fixture.chat('a', ask('broken'))
  await fixture.chat('b', ask('m'))
  await fixture.chat('p', ask('m'))
  await vi.waitUntil(() => databaseOf(fixture.gateway.dataDir).usage().length === 3, 60_000)
  // A stop writes what was refused.
  await fixture.gateway.stop()
})
afterAll(() => fixture?.close())

describe.each(GATEWAY_STATES)('%s', (manner) => {
  const during = <T>(work: () => Promise<T>): Promise<T> => inGatewayState(manner, fixture.gateway, work)
  const rows = async (...args: string[]): Promise<Row[]> =>
    (await during(() => run('logs', ...args, '--json'))).json() as Row[]

  test('sluice logs lists the newest calls first, and selects them by user, key, model, channel and failure', async () => {
    const names = (list: Row[]): string[] => list.map((row) => `${row.username} ${row.model_name}`)
    expect(names(await rows())).toEqual(['bob m', 'ann broken', 'ann m'])
    expect(names(await rows('--limit', '1'))).toEqual(['bob m'])
    expect(names(await rows('--user', 'ann'))).toEqual(['ann broken', 'ann m'])
    expect(names(await rows('--key', 'token-b'))).toEqual(['bob m'])
    expect(names(await rows('--model', 'm', '--user', 'ann'))).toEqual(['ann m'])
    expect(names(await rows('--channel', 'one'))).toEqual(['bob m', 'ann m'])
    expect(names(await rows('--failed'))).toEqual(['ann broken'])
    const { out, err } = await during(() => run('logs', '--user', 'bob'))
    expect(err).toBe('')
    expect(out).toMatch(
      /^TIME +USER +KEY +MODEL +CHANNEL +STATUS +TOKENS +CHARGED +ID\n\S+ \S+ +bob +token-b +m +one +Complete +\d+ in, \d+ out +\d+ \(\$[\d.]+\) +[\da-f-]{36}\n$/,
    )
    expect(await during(() => run('logs', '--model', 'none'))).toMatchObject({
      code: 0,
      out: '',
      err: 'There is no such call that reached a channel; --refused lists refused calls.\n',
    })
  })

  test('sluice logs explains a failed call: which channel was tried, what the provider said, what the client got', async () => {
    const [failed] = await rows('--failed')
    const { out } = await during(() => run('logs', failed?.id ?? ''))
    expect(out).toMatch(/^user +ann, key "token-a"$/m)
    expect(out).toMatch(/^status +Failed$/m)
    expect(out).toMatch(/^error +500 server_error$/m)
    expect(out).toMatch(/^charged +0 \(\$0\.00\)$/m)
    expect(out).toMatch(/^attempt 1 +two: status 500 out of order after [\d.]+ s$/m)
  })

  test('sluice logs --refused lists calls that were refused, and one of them has the message that its client got', async () => {
    const refused = await rows('--refused', '--user', 'poor')
    expect(refused).toMatchObject([{ username: 'poor', code: 'insufficient_quota' }])
    expect(await rows('--refused', '--user', 'ann')).toEqual([])
    const { out } = await during(() => run('logs', refused[0]?.id ?? ''))
    expect(out).toMatch(/^status +Refused, not charged$/m)
    expect(out).toMatch(/^error +403 insufficient_quota$/m)
    expect(out).toMatch(/^message +\S/m)
  })

  test('sluice group list and show tell the ratio, members, budget, models and channels of groups', async () => {
    const [list, shown, json] = await during(async () => [
      await run('group', 'list'),
      await run('group', 'show', 'sales'),
      await run('group', 'list', '--json'),
    ])
    expect(list.out).toMatch(/^NAME +RATIO +OPEN +MEMBERS +BUDGET +MODELS +GUARDS$/m)
    expect(list.out).toMatch(/^default +1 +yes +3 +none +2 +none$/m)
    expect(list.out).toMatch(/^sales +0\.5 +no +1 +\d+ of 5000000 \(\$10\.00\) per month +1 +none$/m)
    expect(shown.out).toMatch(/^members +1: bob$/m)
    expect(shown.out).toMatch(/^models +m$/m)
    expect(shown.out).toMatch(/^channels +one$/m)
    expect(json.json()).toMatchObject([
      { group: 'default', members: 3, open: true },
      { group: 'sales', members: 1, open: false, ratio: '0.5', models: ['m'], budget: 5_000_000 },
    ])
  })
})

test.each([
  [['group', 'show', 'nowhere'], 'there is no group "nowhere"'],
  [['logs', '00000000-0000'], 'there is no call with this id in the log'],
  [['logs', 'not an id'], 'id: expected the id of a call'],
  [['logs', '--user', 'nobody'], 'there is no user "nobody"'],
  [['logs', '--limit', '0'], 'limit: expected a whole number from 1 to 1000'],
])('sluice %j is refused with an error message', async (args, sentence) => {
  expect(await run(...args)).toMatchObject({ code: 1, out: '', err: `sluice: ${sentence}\n` })
})
