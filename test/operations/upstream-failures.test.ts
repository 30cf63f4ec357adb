import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { contentFrame, errorBody, roleFrame } from '../fixtures/behaviour.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { readMetrics } from './metrics-text.ts'
import { type Program, discard, runProgram } from './program.ts'

type Line = Record<string, unknown>

const MODELS = ['pair', 'keys', 'mine', 'dead', 'slow', 'cut', 'told', 'unbegun', 'odd', 'flood', 'gone']

let upstream: ScriptedUpstream
let program: Program
beforeAll(async () => {
  upstream = await startUpstream()
  const spare = (model: string): object =>
    channel(`${model}-spare`, upstream.baseUrl('spare'), { models: [model] })
  program = await runProgram({
    config: {
      options: { metrics_token: 'watcher', retries: 1 },
      models: priced(MODELS),
      channels: [
        ...['pair', 'mine', 'cut', 'told', 'unbegun', 'odd', 'flood', 'gone'].map((model) =>
          channel(model, upstream.baseUrl(model), { priority: 5 }),
        ),
        channel('keys', upstream.baseUrl('keys'), { keys: ['first-secret', 'second-secret'] }),
        channel('dead', 'http://127.0.0.1:1/v1'),
        channel('slow', upstream.baseUrl('slow'), { timeouts: { first_byte: '200ms' } }),
        ...['pair', 'unbegun', 'gone'].map(spare),
      ] as Record<string, unknown>[],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
  await program.ready()
})
afterAll(async () => {
  await discard(program)
  await upstream?.stop()
})
beforeEach(() => upstream.script('spare', { kind: 'whole' }))

const post = (body: object): Promise<FullResponse> => call(program.url, body, { key: 'ann' })

/** The warnings about an upstream's failures, once the request itself is logged. */
async function warningsOf({ headers }: FullResponse): Promise<Line[]> {
  const own = (): Line[] => program.log().filter((line) => line['id'] === headers['x-request-id'])
  await expect.poll(() => own().some(({ msg }) => msg === 'request')).toBe(true)
  return own().filter(({ msg }) => msg !== 'request')
}

async function errors(channelName: string, cause: string): Promise<number> {
  const headers = { authorization: 'Bearer watcher' }
  const { text } = await call(program.url, undefined, { method: 'GET', path: '/metrics', headers })
  return readMetrics(text).sum('sluice_upstream_errors_total', { channel: channelName, cause })
}

describe('the warning about an upstream failure', () => {
  test("the log's warning about a failed channel names the channel that answered instead", async () => {
    upstream.script('pair', { kind: 'status', status: 503, body: errorBody('out of order') })
    const answer = await post(ask('pair'))
    expect(answer.status).toBe(200)
    const [line, ...more] = await warningsOf(answer)
    expect(more).toEqual([])
    expect(line).toMatchObject({
      level: 40,
      msg: 'upstream failed',
      model: 'pair',
      channel: 'pair',
      key: 1,
      status: 503,
      cause: 'status 503',
      said: 'out of order',
      reaction: 'next channel',
    })
    expect(await errors('pair', 'status 503')).toBe(1)
  })

  test("the log's warning about a refused upstream key has the key's index in the list, and never the key", async () => {
    upstream.decide('keys', ({ headers }) =>
      headers.authorization === 'Bearer first-secret'
        ? { kind: 'status', status: 401, body: errorBody('Incorrect key: first-secret') }
        : { kind: 'status', status: 403, body: errorBody('no access with second-secret') },
    )
    const answer = await post(ask('keys'))
    expect(answer.status).toBe(500)
    expect(await warningsOf(answer)).toMatchObject([
      { key: 1, status: 401, said: 'Incorrect key: [redacted]', reaction: 'next key' },
      { key: 2, status: 403, said: 'no access with [redacted]', reaction: 'gave up' },
    ])
    expect(program.out()).not.toMatch(/first-secret|second-secret/)
  })

  test("the log warns of an upstream's 400, and says that it was returned to the client", async () => {
    upstream.script('mine', { kind: 'status', status: 400, body: errorBody("Unsupported parameter: 'x'") })
    const answer = await post(ask('mine'))
    expect(answer.status).toBe(400)
    expect(await warningsOf(answer)).toMatchObject([
      { status: 400, said: "Unsupported parameter: 'x'", reaction: 'returned to the client' },
    ])
  })

  test('the log warns of a model that the upstream does not have, and says that the next channel was tried', async () => {
    upstream.script('gone', { kind: 'status', status: 404, body: errorBody('The model `gone` is retired') })
    expect(await warningsOf(await post(ask('gone')))).toMatchObject([
      { channel: 'gone', status: 404, said: 'The model `gone` is retired', reaction: 'next channel' },
    ])
  })

  test.each([
    ['dead', 'connection refused (ECONNREFUSED)', 'ECONNREFUSED'],
    ['slow', 'first byte time-out', 'first byte time-out'],
  ])(
    "the log's warning about an upstream without a response names the cause: %s",
    async (model, words, cause) => {
      upstream.script('slow', { kind: 'silence' })
      const answer = await post(ask(model))
      expect(answer.status).toBe(500)
      const [line] = await warningsOf(answer)
      expect(line).toMatchObject({ channel: model, cause: words, reaction: 'gave up' })
      expect(line).not.toHaveProperty('status')
      expect(line).not.toHaveProperty('said')
      expect(await errors(model, cause)).toBe(1)
    },
  )

  test('the log warns of a stream that broke off before its first event, and says that the next channel was tried', async () => {
    upstream.script('unbegun', {
      kind: 'raw',
      bytes: 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n',
      ending: 'close',
    })
    upstream.script('spare', { kind: 'stream' })
    const answer = await post(askStream('unbegun'))
    expect(answer.text).toContain('[DONE]')
    const [line] = await warningsOf(answer)
    expect(line).toMatchObject({ channel: 'unbegun', reaction: 'next channel' })
    upstream.script('unbegun', { kind: 'stream', frames: [`data: ${errorBody('full', 'server_error')}\n\n`] })
    expect(await warningsOf(await post(askStream('unbegun')))).toMatchObject([
      { cause: 'error in the first event', said: 'full', reaction: 'next channel' },
    ])
  })

  test('the log warns of a stream that broke off in the middle, and says that the gateway ended the stream', async () => {
    const frames = [roleFrame(), contentFrame('begun')]
    upstream.script('cut', { kind: 'stream', frames, ending: 'reset' })
    expect(await warningsOf(await post(askStream('cut')))).toMatchObject([
      { channel: 'cut', key: 1, reaction: 'ended the stream' },
    ])
    const told = { kind: 'stream', frames: [...frames, `data: ${errorBody('overloaded')}\n\n`] } as const
    upstream.script('told', { ...told, ending: 'no done' })
    expect(await warningsOf(await post(askStream('told')))).toMatchObject([
      { channel: 'told', cause: 'error in the stream', said: 'overloaded', reaction: 'ended the stream' },
    ])
    expect(await errors('told', 'error in the stream')).toBe(1)
  })
})

describe("the upstream's message in the log", () => {
  const saidFor = async (message: string, fields: object = {}): Promise<unknown> => {
    upstream.script('odd', { kind: 'status', status: 400, body: errorBody(message) })
    // Only five lines a minute of one kind are logged, so that these have different statuses.
    return (await warningsOf(await post({ ...ask('odd'), ...fields })))[0]?.['said']
  }

  test("an upstream's error message is logged on one line with at most 300 characters", async () => {
    expect(await saidFor(`a\u001b[31m\nb\u202ec\u007f ${'x'.repeat(600)}`)).toBe(
      `a [31m b c  ${'x'.repeat(288)}`,
    )
  })

  test("an upstream's error message is logged without the parts of the request that it repeats", async () => {
    const prompt = 'my password is swordfish, please keep it'
    const messages = [{ role: 'user', content: [{ type: 'text', text: prompt }] }]
    expect(await saidFor(`cannot read "${prompt}" here`, { messages })).toBe('cannot read "…" here')
  })

  test("an upstream's error message is logged without the upstream's address", async () => {
    const said = await saidFor(`POST ${upstream.baseUrl('odd')}/chat/completions failed`)
    expect(said).toBe('POST [upstream]/chat/completions failed')
  })
})

test('the log has five upstream warnings of one kind in a minute, and then the number of further ones', async () => {
  upstream.script('flood', { kind: 'status', status: 422, body: errorBody('no') })
  // All at once, so that a slow machine reports them within one minute, too.
  await Promise.all(Array.from({ length: 12 }, () => post(ask('flood'))))
  upstream.script('flood', { kind: 'status', status: 409, body: errorBody('no') })
  await post(ask('flood'))
  program.kill('SIGTERM')
  await program.exit
  const lines = program.log().filter((line) => line['channel'] === 'flood' && line['level'] === 40)
  const single = lines.filter((line) => 'id' in line)
  expect(single.map(({ status }) => status)).toEqual([422, 422, 422, 422, 422, 409])
  expect(lines.filter((line) => 'suppressed' in line)).toMatchObject([
    { channel: 'flood', cause: 'status 422', suppressed: 7 },
  ])
})
