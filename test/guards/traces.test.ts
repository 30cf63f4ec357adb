import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type AlertReceiver, startAlertReceiver } from '../fixtures/alert-receiver.ts'
import {
  type Behaviour,
  contentFrame,
  DONE_FRAME,
  errorBody,
  finishFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { type Collector, startCollector } from '../fixtures/collector.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Values that guards of this file find; none of them may be left anywhere. */
const SECRETS = [
  'code-4711-x',
  'code-4712-x',
  'code-4713-x',
  'code-4714-x',
  'code-4715-x',
  'code-4716-x',
  'code-4717-x',
  'code-4718-x',
] as const
const [ASKED, SAID, KEPT, CUT, QUOTED, CALLED, STATED, SWAPPED] = SECRETS
const match = { regex: 'code-[0-9]+-x' }

/** The events of which a receiver is told. */
const EVENTS = [
  'quota.low',
  'budget.80',
  'budget.100',
  'channel.resting',
  'channel.back',
  'price.incomplete',
  'usage.implausible',
  'provider.limit',
]

let fixture: Fixture
let collector: Collector
let alerts: AlertReceiver
beforeAll(async () => {
  collector = await startCollector()
  alerts = await startAlertReceiver()
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' }
  fixture = await startFixture(
    (upstream) => ({
      options: { keep_responses: '1h', error_details: true, retries: 0 },
      alerts: [alerts.declared(...EVENTS)],
      models: priced(['m', 'claude', 'native', 'broken']),
      channels: [
        channel('m', upstream.baseUrl('m')),
        channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
        channel('native', upstream.baseUrl('native'), { protocol: 'responses' }),
        channel('broken', upstream.baseUrl('broken')),
      ],
      guards: [
        { name: 'in', do: 'block', where: ['input'], match, tokens: ['token-strict'] },
        { name: 'out', do: 'redact', where: ['output'], match, tokens: ['token-ann'] },
        { name: 'half', do: 'redact', where: ['output'], match, tokens: ['token-half'], sample: 0.5 },
        { name: 'stop', do: 'block', where: ['output'], match, tokens: ['token-stopped'] },
        { name: 'swap', do: 'replace', match, tokens: ['token-swapped'] },
        { name: 'seen', do: 'flag', where: ['input'], match, tokens: ['token-flagged'] },
        { name: 'watch', do: 'block', mode: 'monitor', match, tokens: ['token-poor'] },
      ],
      users: [
        ROOT,
        user(
          2,
          'ann',
          ['ann', 'strict', 'stopped', 'free', 'half', 'swapped', 'flagged'].map((key) => token(key)),
        ),
        user(4, 'poor', [token('poor')], { quota: 2_500_000 }),
        ADMIN_USER,
      ],
    }),
    { env },
  )
})
afterAll(async () => {
  await fixture?.close()
  await collector?.stop()
  await alerts?.stop()
})

const respond = (key: string, body: object): Promise<FullResponse> =>
  call(fixture.gateway.url, JSON.stringify(body), { path: '/v1/responses', key })
const read = (key: string, id: string): Promise<FullResponse> =>
  call(fixture.gateway.url, '', { path: `/v1/responses/${id}`, key, method: 'GET' })

test('a stored response is redacted by the guards of the key that made it, and at each read by those of the key that reads it', async () => {
  fixture.upstream.script('claude', wholeMessage([{ text: `it is ${KEPT}` }]))
  const made = await respond('ann', { model: 'claude', input: 'hi' })
  expect(made.text).toContain('it is [REDACTED]')
  const { id } = JSON.parse(made.text) as { id: string }
  expect((await read('ann', id)).text).toContain('it is [REDACTED]')
  expect((await read('free', id)).text).toContain('it is [REDACTED]')
  fixture.upstream.script('claude', wholeMessage([{ text: 'it is code-1-x' }]))
  const open = JSON.parse((await respond('free', { model: 'claude', input: 'hi' })).text) as { id: string }
  expect((await read('free', open.id)).text).toContain('code-1-x')
  expect((await read('ann', open.id)).text).toContain('it is [REDACTED]')
  const refused = await read('stopped', open.id)
  expect(refused.text).toContain('"status":"incomplete"')
  expect(refused.text).not.toContain('code-1-x')
})

test('a guard that checks only a sample of answers checks either every read of the same stored response or none', async () => {
  const verdicts = new Set<string>()
  for (let made = 0; made < 16; made += 1) {
    fixture.upstream.script('claude', wholeMessage([{ text: 'it is code-1-x' }]))
    const { id } = JSON.parse((await respond('free', { model: 'claude', input: 'hi' })).text) as {
      id: string
    }
    const reads = new Set<string>()
    for (let times = 0; times < 5; times += 1)
      reads.add((await read('half', id)).text.includes('[REDACTED]') ? 'checked' : 'not checked')
    expect(reads.size).toBe(1)
    for (const one of reads) verdicts.add(one)
  }
  expect(verdicts.size).toBe(2)
})

test('a response that its provider stores is redacted by the guards of the key that reads it', async () => {
  fixture.upstream.script(
    'native',
    wholeResponse({ text: 'it is code-2-x' }),
    wholeResponse({ text: 'it is code-2-x' }),
  )
  const made = await respond('free', { model: 'native', input: 'hi' })
  const { id } = JSON.parse(made.text) as { id: string }
  const again = await read('ann', id)
  expect(again.text).toContain('it is [REDACTED]')
  expect(again.headers['x-gateway-guards']).toBe('out=redacted;count=1')
  // Both would show parts of answers as they were generated.
  for (const part of ['/input_items', '?stream=true&starting_after=3'])
    expect((await read('ann', `${id}${part}`)).status).toBe(400)
})

test('what a response in the background says at its beginning is checked, however long it is', async () => {
  for (const words of [1, 2000]) {
    const begun = JSON.parse(
      (wholeResponse({ text: `${'a '.repeat(words)} code-3-x` }) as { body: string }).body,
    )
    const body = JSON.stringify({ ...begun, status: 'in_progress', background: true, usage: null })
    fixture.upstream.script('native', { kind: 'whole', body })
    const answer = await respond('ann', { model: 'native', input: 'hi', background: true })
    expect(answer.text).toContain('"status":"in_progress"')
    expect(answer.text).toContain('[REDACTED]')
    expect(answer.text).not.toContain('code-3-x')
  }
})

test('a stream that a guard blocks costs what was generated until then, and its provider is not read to the end', async () => {
  const frames = [contentFrame('It is '), contentFrame(CUT), contentFrame(' and more')]
  fixture.upstream.script('m', { kind: 'stream', frames, ending: 'stall' })
  const answer = await fixture.chat('stopped', askStream('m'))
  expect(answer.text).toContain('"finish_reason":"content_filter"')
  expect(answer.text).not.toContain('and more')
  const row = await rowOf(answer)
  expect(row).toMatchObject({ note: 'guard_blocked', guards: 'stop=blocked;count=1' })
  expect(row['quota']).toBeGreaterThan(0)
})

test('a whole answer that a guard blocks costs what its provider reports', async () => {
  fixture.upstream.script('m', { kind: 'whole', content: `It is ${SAID}`, usage: usageText(100, 50) })
  const answer = await fixture.chat('stopped', ask('m'))
  expect(JSON.parse(answer.text)).toMatchObject({
    choices: [{ message: { content: null }, finish_reason: 'content_filter' }],
    usage: { prompt_tokens: 100, completion_tokens: 50 },
  })
  expect(await rowOf(answer)).toMatchObject({ quota: 300, prompt_tokens: 100, completion_tokens: 50 })
})

test('a request that a guard blocks costs nothing, has no usage row, and is listed among the refused calls', async () => {
  const before = (await manage<{ used_quota: number }>(fixture.gateway.url, ADMIN, 'GET /api/user/2')).data
  const body = ask('m', { messages: [{ role: 'user', content: `tell ${ASKED}` }] })
  const answer = await fixture.chat('strict', body)
  expect(answer.status).toBe(400)
  expect(
    fixture.upstream
      .received('m')
      .map(({ text }) => text)
      .join(''),
  ).not.toContain(ASKED)
  const after = (await manage<{ used_quota: number }>(fixture.gateway.url, ADMIN, 'GET /api/user/2')).data
  expect(after.used_quota).toBe(before.used_quota)
})

test('the log probabilities of a text that a guard redacts are removed from the answer', async () => {
  const logprobs = { content: [{ token: SAID, logprob: -1, bytes: [99], top_logprobs: [] }] }
  const choice = (rest: object): object => ({ index: 0, ...rest, logprobs })
  const body = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
  fixture.upstream.script('m', {
    kind: 'whole',
    body: JSON.stringify({
      ...body,
      choices: [choice({ message: { role: 'assistant', content: SAID }, finish_reason: 'stop' })],
      usage: JSON.parse(usageText(1, 1)),
    }),
  })
  expect((await fixture.chat('ann', ask('m'))).text).not.toContain(SAID)
  const chunk = {
    ...body,
    object: 'chat.completion.chunk',
    choices: [choice({ delta: { content: SAID }, finish_reason: null })],
  }
  const frames = [
    `data: ${JSON.stringify(chunk)}\n\n`,
    finishFrame(),
    usageFrame(usageText(1, 1)),
    DONE_FRAME,
  ]
  fixture.upstream.script('m', { kind: 'stream', frames, ending: 'no done' })
  const streamed = await fixture.chat('ann', askStream('m'))
  expect(streamed.text).toContain('[REDACTED]')
  expect(streamed.text).not.toContain(SAID)
})

test('a guard checks each choice of a streamed answer separately', async () => {
  const piece = (index: number, content: string): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index, delta: { content }, finish_reason: null }] })}\n\n`
  const end = (index: number): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index, delta: {}, finish_reason: 'stop' }] })}\n\n`
  // Put together, the pieces of both would match; each by itself only that of the first.
  const frames = [
    piece(0, 'a code-47'),
    piece(1, 'b code-1'),
    piece(0, '11-x!'),
    piece(1, 'y-x'),
    end(0),
    end(1),
    DONE_FRAME,
  ]
  fixture.upstream.script('m', { kind: 'stream', frames, ending: 'no done' })
  const { text } = await fixture.chat('ann', askStream('m', { n: 2 }))
  const said = ['', '']
  for (const line of text.split('\n').filter((one) => one.startsWith('data: {')))
    for (const { index, delta } of (
      JSON.parse(line.slice(6)) as { choices: { index: number; delta: { content?: string } }[] }
    ).choices)
      said[index] += delta.content ?? ''
  expect(said).toEqual(['a [REDACTED]!', 'b code-1y-x'])
})

test('a guard redacts a stream identically, at whatever bytes the network divides it', async () => {
  const text = `It is ${SAID}, and "${SAID}".`
  for (const upstream of [streamedResponse({ text }), { ...streamedResponse({ text }), drip: true }]) {
    fixture.upstream.script('native', upstream)
    const answer = await respond('ann', { model: 'native', input: 'hi', stream: true })
    const deltas = answer.text.split('\n').flatMap((line) => {
      const event = line.startsWith('data: ')
        ? (JSON.parse(line.slice(6)) as { type: string; delta?: string })
        : undefined
      return event?.type === 'response.output_text.delta' ? [event.delta ?? ''] : []
    })
    expect(deltas.join('')).toBe('It is [REDACTED], and "[REDACTED]".')
    expect(answer.text).not.toContain(SAID)
  }
})

test("a guard's match that a provider quotes in its error is shown to the client", async () => {
  const message = `I do not like "${QUOTED}"`
  const asking = ask('broken', { messages: [{ role: 'user', content: QUOTED }] })
  fixture.upstream.script('broken', { kind: 'status', status: 400, body: errorBody(message) })
  const shown = await fixture.chat('poor', asking)
  expect([shown.status, shown.text.includes(QUOTED)]).toEqual([400, true])
  fixture.upstream.script('broken', {
    kind: 'stream',
    frames: [contentFrame('It'), `data: ${errorBody(message)}\n\n`],
    ending: 'no done',
  })
  expect((await fixture.chat('poor', { ...asking, stream: true })).text).toContain(QUOTED)
  fixture.upstream.script('broken', { kind: 'status', status: 500, body: errorBody(message) })
  for (let calls = 0; calls < 6; calls += 1) await fixture.chat('poor', asking)
  await alerts.atLeast(1)
})

/** An error with these words: whole, and in the middle of a stream. */
const failing = (words: string): readonly [Behaviour, Behaviour] => [
  { kind: 'status', status: 400, body: errorBody(words) },
  { kind: 'stream', frames: [contentFrame('It'), `data: ${errorBody(words)}\n\n`], ending: 'no done' },
]

test.each([
  ['ann', '[REDACTED] said too much'],
  ['stopped', 'a guard refused the words of this error'],
  ['flagged', '[REDACTED] said too much'],
])(
  "a match in a provider's error that is not in the request is in no record of the call: %s",
  async (key, message) => {
    for (const [at, error] of failing(`${STATED} said too much`).entries()) {
      fixture.upstream.script('m', error)
      const answer = await fixture.chat(key, ask('m', { stream: at === 1 }))
      expect(answer.text).toContain(key === 'flagged' ? STATED : message)
      expect(await detailOf(answer)).toEqual({ error: message, attempts: [message] })
    }
  },
)

test("a value that a guard replaced is put back in a provider's error for the client, and in no record of the call", async () => {
  const messages = [{ role: 'user', content: `Mail ${SWAPPED} now` }]
  for (const stream of [false, true]) {
    let token = ''
    fixture.upstream.decide('m', ({ text }) => {
      token = /\[\[SWAP_\w+\]\]/.exec(text)?.[0] ?? ''
      return failing(`cannot mail ${token}`)[stream ? 1 : 0]
    })
    const answer = await fixture.chat('swapped', ask('m', { messages, stream }))
    expect(answer.text).toContain(`cannot mail ${SWAPPED}`)
    const message = `cannot mail ${token}`
    expect(await detailOf(answer)).toEqual({ error: message, attempts: [message] })
  }
})

test('what the provider of a stored response says in an error is checked by the guards of the key that reads it', async () => {
  fixture.upstream.script('native', wholeResponse({ text: 'hi' }))
  const made = await respond('free', { model: 'native', input: 'hi' })
  const { id } = JSON.parse(made.text) as { id: string }
  fixture.upstream.script('native', failing(`${STATED} said too much`)[0])
  for (const path of [id, `${id}?stream=true`]) {
    const { status, text } = await read('ann', path)
    expect([status, text]).toEqual([400, expect.stringContaining('[REDACTED] said too much')])
  }
})

test('a match that a guard in monitor mode finds in tool arguments or in fields that no API describes is shown to the client', async () => {
  const tool_calls = [
    {
      index: 0,
      id: 'c',
      type: 'function',
      function: { name: 'f', arguments: JSON.stringify({ [CALLED]: 1 }) },
    },
  ]
  const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const events = [
    { ...chunk, choices: [{ index: 0, delta: { tool_calls } }] },
    { ...chunk, choices: [{ index: 0, delta: { x_note: CALLED } }], x_note: CALLED },
  ]
  const frames = [
    ...events.map((event) => `data: ${JSON.stringify(event)}\n\n`),
    `: ${CALLED}\n\n`,
    finishFrame(),
    usageFrame(usageText(10, 5)),
    DONE_FRAME,
  ]
  fixture.upstream.script('m', { kind: 'stream', frames, ending: 'no done' })
  const answer = await fixture.chat('poor', askStream('m'))
  expect(answer.text).toContain(CALLED)
  expect(await rowOf(answer)).toMatchObject({ guards: 'watch=flagged;count=3' })
  await vi.waitFor(() => expect(alerts.received.map(({ type }) => type)).toContain('quota.low'), {
    timeout: 60_000,
    interval: 100,
  })
})

// The last test: it searches what all others have left.
test("no usage row, refused call, metric, log line, span, alert or file of the gateway contains a guard's match", async () => {
  const spans = (): number => collector.spans().length
  await vi.waitFor(() => expect(spans()).toBeGreaterThan(20), { timeout: 60_000, interval: 200 })
  const { data } = await manage(fixture.gateway.url, ADMIN, 'GET /api/log/?page_size=100')
  const refused = await vi.waitFor(
    async () => {
      const found = await manage(fixture.gateway.url, ADMIN, 'GET /api/log/refused')
      expect(JSON.stringify(found.data)).toContain('guard_blocked')
      return found
    },
    { timeout: 60_000, interval: 200 },
  )
  const guards = await manage(fixture.gateway.url, ADMIN, 'GET /api/guards')
  const metrics = await call(fixture.gateway.url, '', { path: '/metrics', method: 'GET' })
  const files = readdirSync(fixture.gateway.dataDir, { recursive: true })
    .map((name) => join(fixture.gateway.dataDir, String(name)))
    .filter((path) => statSync(path).isFile())
  const places = {
    rows: JSON.stringify(data),
    refused: JSON.stringify(refused.data),
    guards: JSON.stringify(guards.data),
    metrics: metrics.text,
    log: fixture.gateway.logs(),
    spans: collector.raw(),
    alerts: alerts.received.map(({ text }) => text).join(''),
    ...Object.fromEntries(files.map((path) => [path, readFileSync(path, 'latin1')])),
  }
  for (const [place, text] of Object.entries(places))
    for (const secret of SECRETS) expect(text.includes(secret), `${secret} in ${place}`).toBe(false)
})

/** What the row of a failed call keeps of the provider's words. */
function detailOf({ headers }: FullResponse): Promise<object> {
  return vi.waitFor(() => {
    const row = databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
    const { message } = JSON.parse(row?.error ?? '') as { message: string }
    const attempts = JSON.parse(row?.attempts ?? '') as { message: string }[]
    return { error: message, attempts: attempts.map((one) => one.message) }
  }, 60_000)
}

async function rowOf({ headers }: FullResponse): Promise<Readonly<Record<string, unknown>>> {
  const id = String(headers['x-request-id'])
  const { data } = await manage<{ items: Readonly<Record<string, unknown>>[] }>(
    fixture.gateway.url,
    ADMIN,
    'GET /api/log/?page_size=100',
  )
  const row = data.items.find((one) => one['id'] === id)
  if (!row) throw new Error(`the call ${id} has no row`)
  return row
}
