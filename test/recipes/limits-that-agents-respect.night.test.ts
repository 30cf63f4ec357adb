import OpenAI from 'openai'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { usageText } from '../fixtures/behaviour.ts'
import { type Configuration, plainConfiguration, ROOT } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { addedCode } from './recipe.ts'

const GUIDE = 'guides/limits-that-agents-respect'
/** A gateway with the users of the guide; `edit` changes the text of the page. */
async function gatewayOf(edit = (page: string): string => page): Promise<Fixture> {
  const { users } = parse(edit(addedCode(GUIDE, 'yaml'))) as Required<Pick<Configuration, 'users'>>
  const fixture = await startFixture(
    (upstream) => ({ ...plainConfiguration(upstream.baseUrl('m')), users: [ROOT, ...users] }),
    { env: { AGENT_1_KEY: 'sk-agent1' } },
  )
  onTestFinished(() => fixture.close())
  return fixture
}

const STATED = /^x-ratelimit-/
/** What the page shows of an answer, by header. */
const SHOWN = Object.fromEntries(
  addedCode(GUIDE, 'http')
    .split('\n')
    .flatMap((line): [string, string][] => {
      const [name = '', value = ''] = line.trim().split(': ')
      return STATED.test(name) ? [[name, value]] : []
    }),
)

test('an answer states the tightest rate limits of key and user in the headers that the guide shows', async () => {
  const fixture = await gatewayOf()
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(400, 188) })
  const { status, headers } = await fixture.chat('agent1', ask('m'))
  expect(status).toBe(200)
  expect(Object.fromEntries(Object.entries(headers).filter(([name]) => STATED.test(name)))).toEqual(SHOWN)
})

test('the official OpenAI client can read the remaining requests of its key, and waits by itself at the rate limit', async () => {
  const fixture = await gatewayOf((page) =>
    page.replace('requests: 120, parallel: 8, window: 60s', 'requests: 2, parallel: 8, window: 8s'),
  )
  fixture.upstream.script('m', { kind: 'whole', usage: usageText(1, 1) })
  const client = new OpenAI({ apiKey: 'sk-agent1', baseURL: `${fixture.gateway.url}/v1` })
  const left: unknown[] = []
  for (let calls = 0; calls < 3; calls += 1) {
    const { response } = await client.chat.completions
      .create({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
      .withResponse()
    left.push(response.headers.get('x-ratelimit-remaining-requests'))
  }
  expect(left).toHaveLength(3)
  expect(left.slice(0, 2)).toEqual(['1', '0'])
  expect(fixture.upstream.received('m')).toHaveLength(3)
})

test('calls above a parallel or rate limit are refused with a time to wait, do not count, and interrupt no running call', async () => {
  const fixture = await gatewayOf((page) => page.replace('requests: 120', 'requests: 9'))
  const gate = Promise.withResolvers<void>()
  fixture.upstream.script('m', { kind: 'whole', after: gate.promise, usage: usageText(1, 1) })
  const held = Array.from({ length: 8 }, () => fixture.chat('agent1', ask('m')))
  await fixture.upstream.receivedAtLeast('m', 8)
  // More calls at once than `parallel`: refused, although requests are left.
  const crowded = await fixture.chat('agent1', ask('m'))
  expect([crowded.status, crowded.json().error.code]).toEqual([429, 'rate_limited'])
  gate.resolve()
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
  await expect.poll(async () => (await fixture.chat('agent1', ask('m'))).status).toBe(200)
  for (let calls = 0; calls < 3; calls += 1) {
    const refused = await fixture.chat('agent1', ask('m'))
    expect([refused.status, refused.json().error.code]).toEqual([429, 'rate_limited'])
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60)
    expect(refused.headers['x-ratelimit-remaining-requests']).toBe('0')
  }
  expect(fixture.upstream.received('m')).toHaveLength(9)
})
