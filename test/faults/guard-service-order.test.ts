import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame, roleFrame, usageText } from '../fixtures/behaviour.ts'
import { call, streamedContent } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { manage } from '../fixtures/account.ts'

const CODE = 'code-4711-x'
const MANY = 300

interface Call {
  readonly function: { readonly arguments: string }
}

let services: GuardServices
let fixture: Fixture
beforeAll(async () => {
  services = await startGuardServices()
  const asked = { match: { webhook: { url: services.url } }, timeout: '60s' }
  const words = { words: ['nowhere'] }
  const guards = [
    { name: 'watch', do: 'block', mode: 'monitor', ...asked, where: ['output'], tokens: ['token-watch'] },
    { name: 'codes', do: 'redact', match: { regex: 'code-[0-9]+-x' }, tokens: ['token-both'] },
    { name: 'asked', do: 'block', ...asked, tokens: ['token-both'] },
    { name: 'first', do: 'redact', ...asked, where: ['tool_arguments'], tokens: ['token-two'] },
    { name: 'second', do: 'flag', ...asked, where: ['tool_arguments'], tokens: ['token-two'] },
    { name: 'calls', do: 'flag', ...asked, where: ['output', 'tool_arguments'], tokens: ['token-calls'] },
    {
      name: 'seen',
      do: 'flag',
      match: { regex: 'code-[0-9]+-x' },
      where: ['output', 'tool_arguments'],
      tokens: ['token-seen'],
    },
    ...Array.from({ length: MANY }, (_, index) => ({
      name: `a-guard-with-a-rather-long-name-that-fills-a-header-${index}`,
      do: 'flag',
      match: index === MANY - 1 ? { words: ['plum'] } : words,
      tokens: ['token-many'],
    })),
  ]
  fixture = await startFixture((upstream) => ({
    models: priced(['m', 'gem', 'native']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('gem', upstream.baseUrl('gem'), { protocol: 'gemini' }),
      channel('native', upstream.baseUrl('native'), { protocol: 'responses' }),
    ],
    guards,
    users: [
      ROOT,
      user(
        2,
        'ann',
        ['watch', 'both', 'two', 'calls', 'seen', 'many'].map((name) => token(name)),
      ),
      ADMIN_USER,
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})
beforeEach(() => {
  services.asked.splice(0)
})

const asked = (): unknown[] =>
  services.asked.map(({ body }) => [
    body.input_type,
    body.texts,
    body.tool_calls.map((one: Call) => one.function.arguments),
  ])

test('a stream that breaks off under a guard in monitor mode reaches the client up to the break', async () => {
  fixture.upstream.script('m', {
    kind: 'stream',
    frames: [roleFrame(), contentFrame('It is '), contentFrame('a long story')],
    ending: 'reset',
  })
  const { text } = await fixture.chat('watch', askStream('m'))
  expect(streamedContent(text)).toBe('It is a long story')
  expect(text).toContain('"error"')
})

test.each([false, true])(
  "a guard's service gets an answer after the local guards have changed it (stream: %s)",
  async (isStream) => {
    const said = `It is ${CODE}.`
    if (isStream)
      fixture.upstream.script('m', {
        kind: 'stream',
        frames: [
          roleFrame(),
          contentFrame(said.slice(0, 9)),
          contentFrame(said.slice(9)),
          finishFrame(),
          DONE_FRAME,
        ],
        ending: 'no done',
      })
    else fixture.upstream.script('m', { kind: 'whole', content: said, usage: usageText(1, 1) })
    const { text } = await fixture.chat('both', isStream ? askStream('m') : ask('m'))
    expect(text).not.toContain('4711-x')
    expect(isStream ? streamedContent(text) : JSON.parse(text).choices[0].message.content).toBe(
      'It is [REDACTED].',
    )
    expect(asked().at(-1)).toEqual(['response', ['It is [REDACTED].'], []])
  },
)

test("a guard's service gets tool arguments as the preceding guard's service has changed them", async () => {
  fixture.upstream.script('m', { kind: 'whole', content: 'ok', usage: usageText(1, 1) })
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: JSON.stringify({ to: CODE }) } }
  await fixture.chat(
    'two',
    ask('m', {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'a', content: 'ok' },
      ],
    }),
  )
  expect(asked()).toEqual([
    ['request', ['to', CODE], [`{"to":"${CODE}"}`]],
    ['request', ['to', '<code>'], ['{"to":"<code>"}']],
  ])
})

test.each(['whole', 'streamed'])(
  "a guard's service is sent a tool call without arguments in an answer without text (%s)",
  async (form) => {
    const given = { text: '', calls: [{ name: 'delete_all', args: '{}' }] }
    fixture.upstream.script('gem', form === 'whole' ? wholeGemini(given) : streamedGemini(given))
    const method = form === 'whole' ? 'generateContent' : 'streamGenerateContent?alt=sse'
    const { text } = await call(
      fixture.gateway.url,
      JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }),
      { path: `/v1beta/models/gem:${method}`, headers: { 'x-goog-api-key': 'sk-calls' } },
    )
    expect(text).toContain('delete_all')
    expect(asked()).toEqual([['response', [], ['{}']]])
  },
)

test('a stream item that arrives in one event is checked by the guards once', async () => {
  let number = 0
  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...members })}\n\n`
  const response = { id: 'r1', object: 'response', status: 'completed', created_at: 1, model: 'native' }
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
  const item = {
    type: 'local_shell_call',
    id: 's',
    call_id: 'c',
    status: 'completed',
    action: { type: 'exec', command: [CODE] },
  }
  fixture.upstream.script('native', {
    kind: 'stream',
    ending: 'no done',
    frames: [
      event('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
      event('response.output_item.added', { output_index: 0, item }),
      event('response.output_item.done', { output_index: 0, item }),
      event('response.completed', { response: { ...response, output: [item], usage } }),
    ],
  })
  const body = JSON.stringify({ model: 'native', input: 'hi', stream: true })
  const { text, headers } = await call(fixture.gateway.url, body, { path: '/v1/responses', key: 'seen' })
  expect(text).toContain(CODE)
  const query = `GET /api/log/${String(headers['x-request-id'])}` as const
  const row = (await manage<Record<string, unknown>>(fixture.gateway.url, ADMIN, query)).data
  expect(row['guards']).toBe('seen=flagged;count=1')
})

test('x-gateway-guards has at most 4,096 bytes, with the most severe verdicts and the number of verdicts left out', async () => {
  fixture.upstream.script('m', { kind: 'whole', content: 'ok', usage: usageText(1, 1) })
  const { headers } = await fixture.chat(
    'many',
    ask('m', { messages: [{ role: 'user', content: 'a plum' }] }),
  )
  const verdicts = String(headers['x-gateway-guards'])
  expect(verdicts.length).toBeLessThanOrEqual(4096)
  const listed = verdicts.split(', ')
  expect(listed[0]).toBe(`a-guard-with-a-rather-long-name-that-fills-a-header-${MANY - 1}=flagged;count=1`)
  expect(listed.at(-1)).toBe(`...;more=${MANY - listed.length + 1}`)
})
