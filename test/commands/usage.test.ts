import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { commandOn, GATEWAY_STATES, inGatewayState, type Outcome, SECRET } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

interface Line {
  readonly name: string
  readonly id: number | null
  readonly requests: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly quota: number
}

let fixture: Fixture
const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'usage', ...args)
const today = (): string => new Date().toISOString().slice(0, 10)

beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['m', 'n']),
      channels: [channel('one', upstream.baseUrl('one'), { models: ['m', 'n'] })],
      users: [ROOT, user(2, 'ann', [token('a'), token('b')]), user(3, 'bob', [token('c')])],
    }),
    { env: { GATEWAY_SECRET: SECRET } },
  )
  for (const key of ['a', 'a', 'b', 'c']) await fixture.chat(key, ask('m'))
  await fixture.chat('c', ask('n'))
  await vi.waitUntil(() => databaseOf(fixture.gateway.dataDir).usage().length === 5, 60_000)
})
afterAll(() => fixture.close())

describe.each(GATEWAY_STATES)('sluice usage, %s', (manner) => {
  const during = <T>(work: () => Promise<T>): Promise<T> => inGatewayState(manner, fixture.gateway, work)

  test('sluice usage sums up the charges of the usage log exactly by model, user, key, channel and day', async () => {
    const rows = databaseOf(fixture.gateway.dataDir).usage()
    const names: Record<string, (row: (typeof rows)[number]) => string> = {
      model: ({ model }) => model,
      user: ({ user_id }) => (user_id === 2 ? 'ann' : 'bob'),
      key: ({ token_id }) =>
        databaseOf(fixture.gateway.dataDir)
          .tokens()
          .find(({ id }) => id === token_id)?.name ?? '',
      channel: () => 'one',
      day: () => today(),
    }
    const day = today()
    const answers = await during(async () => {
      const said: Record<string, Line[]> = {}
      for (const by of Object.keys(names)) said[by] = (await run('--by', by, '--json')).json() as Line[]
      return said
    })
    // Sums of a day that ends meanwhile are those of two.
    if (today() !== day) return
    for (const [by, nameOf] of Object.entries(names)) {
      const expected = Map.groupBy(rows, nameOf)
      expect(answers[by]?.map(({ name }) => name).toSorted()).toEqual([...expected.keys()].toSorted())
      for (const line of answers[by] ?? []) {
        const own = expected.get(line.name) ?? []
        expect(line).toMatchObject({
          requests: own.length,
          quota: own.reduce((sum, { quota }) => sum + quota, 0),
          prompt_tokens: own.reduce((sum, { input_tokens }) => sum + input_tokens, 0),
          completion_tokens: own.reduce((sum, { output_tokens }) => sum + output_tokens, 0),
        })
      }
    }
  })

  test('sluice usage prints a table, the most expensive rows first, or a sentence if no calls were charged in the period', async () => {
    const [table, none] = await during(async () => [
      await run('--by', 'user'),
      await run('--from', '2020-01-01', '--to', '2020-12-31'),
    ])
    expect(table).toMatchObject({ code: 0, err: '' })
    expect(table.out).toMatch(
      /^ID {2}USER {2}CALLS {2}PROMPT TOKENS {2}OUTPUT TOKENS +CHARGED\n 2 {2}ann +3 .*\n 3 {2}bob +2 .*\n$/,
    )
    expect(none).toMatchObject({ code: 0, out: '', err: 'No calls were charged in this period.\n' })
  })

  test('sluice usage --csv prints the same sums, with the charge in dollars', async () => {
    const [csv, json] = await during(async () => [
      await run('--by', 'user', '--csv'),
      await run('--by', 'user', '--json'),
    ])
    const [header, ...rows] = csv.out.trimEnd().split('\r\n')
    expect(header).toBe('user,id,requests,prompt_tokens,completion_tokens,quota,cost_usd')
    expect(rows).toEqual(
      (json.json() as Line[]).map((line) =>
        [
          line.name,
          line.id,
          line.requests,
          line.prompt_tokens,
          line.completion_tokens,
          line.quota,
          // 500,000 quota units are one dollar.
          String(line.quota / 500_000),
        ].join(','),
      ),
    )
    expect(rows).toHaveLength(2)
  })

  test('sluice usage includes the first and the last day of the given period', async () => {
    const day = today()
    const [within, before] = await during(async () => [
      await run('--by', 'day', '--from', day, '--to', day, '--json'),
      await run('--by', 'day', '--to', '2020-12-31', '--json'),
    ])
    if (today() !== day) return
    expect(within.json()).toMatchObject([{ name: day, id: null, requests: 5 }])
    expect(before.json()).toEqual([])
  })
})

test.each([
  [['--by', 'colour'], 'Allowed choices are model, user, key, channel, day'],
  [['--from', 'yesterday'], 'from: expected a day such as 2027-01-31'],
  [['--to', '2027-02-30'], 'to: expected a day such as 2027-01-31'],
  [['--from', '2027-02-02', '--to', '2027-02-01'], 'from: expected a day that is not after "to"'],
])('sluice usage %j is refused with a message that says what is expected', async (args, said) => {
  const { code, out, err } = await run(...args)
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain(said)
})
