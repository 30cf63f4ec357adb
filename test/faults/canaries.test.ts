import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { textTool, ToolError } from '@sluice/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { completionText, errorBody, usageText } from '../fixtures/behaviour.ts'
import { type FullResponse, call, open, retryWhileShed } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { messagesErrorText, streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { askMcp, startMcpServer, type TestMcpServer } from '../fixtures/mcp.ts'
import { discard, type Program, runProgram } from '../operations/program.ts'

/** Secrets that exist in one place only: a secret found elsewhere was leaked. */
const UPSTREAM_KEYS = ['canaryupstreamkeyone9', 'canary/upstream+key"two\\9', 'sk-canary-upstream-three9']
const HEADER = 'canaryheaderofthechannel9'
const KEYS = { ann: 'canarykeyofann9', bob: 'canarykeyofbob9' }
const ACCESS = { id: 2, accessToken: 'canaryaccesstokenofann9' }
const METRICS = 'canarymetricstoken9'
const CLIENT_SECRET = 'canaryclientsecret9'
/** What a server of tools is asked with, in a header and in its address. */
const TOOL_KEYS = ['canarytoolsheader9', 'canarytoolsquery9'] as const
const SECRET_TEXTS = {
  prompt: 'canaryprompt9',
  answer: 'canaryanswer9',
  query: 'canaryquery9',
  sent: 'canarysent9',
}
const CANARY = /canary\w*/

let upstream: ScriptedUpstream
let tools: TestMcpServer
let program: Program
/** Everything that each client received, including headers. */
const received = { ann: '', bob: '', stranger: '' }
beforeAll(async () => {
  upstream = await startUpstream()
  tools = await startMcpServer({
    name: 'tools',
    versions: ['2026-07-28', '2025-11-25'],
    tools: () => [
      textTool({ name: 'tell', description: 'tells' }, () => {
        const told = [...TOOL_KEYS, tools.url].join(' and ')
        throw new ToolError(-32_001, told, { [told]: [told] })
      }),
    ],
  })
  program = await runProgram({ config: configuration(), env: { LOG_LEVEL: 'trace' } })
  await program.ready()
  await traffic()
  program.kill('SIGTERM')
  await program.exit
})
afterAll(async () => {
  await discard(program)
  await tools?.close()
  await upstream?.stop()
})

function configuration(): Configuration {
  const models = ['chat', 'claude', 'down']
  return {
    options: { metrics_token: METRICS, retries: 0, media: { timeout: '1s' } },
    login: {
      oidc: [
        {
          name: 'corp',
          issuer: 'http://127.0.0.1:9/canarypath9',
          client_id: 'sluice',
          client_secret: CLIENT_SECRET,
        },
      ],
    },
    mcp: {
      servers: ['2026-07-28', '2025-11-25'].map((era, index) => ({
        name: `tools${index}`,
        url: `${tools.url}?key=${TOOL_KEYS[1]}`,
        era,
        auth: 'header',
        headers: { authorization: `Bearer ${TOOL_KEYS[0]}` },
      })),
    },
    models: priced(models),
    channels: [
      channel('chat', upstream.baseUrl('chat'), { keys: UPSTREAM_KEYS, headers: { 'x-key': HEADER } }),
      channel('claude', upstream.baseUrl('claude'), {
        protocol: 'messages',
        keys: UPSTREAM_KEYS,
        headers: { 'x-key': HEADER },
      }),
      channel('down', 'http://127.0.0.1:9/canarypath9', { keys: UPSTREAM_KEYS }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token(KEYS.ann)], { access_token: ACCESS.accessToken }),
      user(3, 'bob', [token(KEYS.bob)]),
    ].map((seed) => ({ ...seed, tokens: (seed as { tokens?: object[] }).tokens?.map(renamed) })),
  }
}

// Token names must differ from the keys, which the seeds of the tests use as names.
function renamed(seed: object, index: number): object {
  return { ...seed, name: `token ${index}` }
}

function recorded(
  who: keyof typeof received,
  { status, headers, text }: Pick<FullResponse, 'status' | 'headers' | 'text'>,
): void {
  received[who] += `${status} ${JSON.stringify(headers)} ${text}\n`
}

/**
 * Makes calls of every kind, with valid and invalid responses, to an upstream that discloses everything it
 * knows.
 */
async function traffic(): Promise<void> {
  const echo = [SECRET_TEXTS.prompt, ...UPSTREAM_KEYS, HEADER, upstream.baseUrl('chat')].join(' and ')
  const path = (way: string): string => `${way}?key=${SECRET_TEXTS.query}`
  const headers = {
    cookie: SECRET_TEXTS.sent,
    'user-agent': SECRET_TEXTS.sent,
    'x-custom': SECRET_TEXTS.sent,
  }
  const request = (model: string, stream: boolean): object => ({
    model,
    stream,
    max_tokens: 50,
    messages: [{ role: 'user', content: SECRET_TEXTS.prompt }],
    metadata: { user_id: SECRET_TEXTS.prompt },
  })
  const askBoth = async (model: string, stream: boolean): Promise<void> => {
    for (const way of ['/v1/chat/completions', '/v1/messages'])
      recorded(
        'ann',
        await open(program.url, request(model, stream), { key: KEYS.ann, path: path(way), headers }).then(
          (answer) => answer.end(),
        ),
      )
  }

  for (const stream of [false, true]) {
    upstream.script(
      'chat',
      stream
        ? { kind: 'stream', word: SECRET_TEXTS.answer }
        : {
            kind: 'whole',
            content: SECRET_TEXTS.answer,
            headers: { 'x-request-id': SECRET_TEXTS.sent, 'x-told': echo },
          },
    )
    upstream.script(
      'claude',
      stream
        ? streamedMessage([{ text: SECRET_TEXTS.answer }])
        : wholeMessage([{ text: SECRET_TEXTS.answer }]),
    )
    for (const model of ['chat', 'claude', 'down']) await askBoth(model, stream)
    // Errors that disclose everything, in every format and with every status.
    for (const status of [400, 401, 403, 404, 413, 422, 429, 500, 502, 503, 529]) {
      for (const body of [
        errorBody(echo, echo, echo),
        messagesErrorText(echo, echo),
        JSON.stringify({ detail: [{ msg: echo, loc: [echo] }], [echo]: echo }),
        echo,
        `<html>${echo}</html>`,
      ]) {
        upstream.script('chat', { kind: 'status', status, body, headers: { 'www-authenticate': echo } })
        upstream.script('claude', { kind: 'status', status, body })
        await askBoth('chat', stream)
        await askBoth('claude', stream)
      }
    }
    for (const lane of ['chat', 'claude']) {
      upstream.script(lane, { kind: 'raw', bytes: `HTTP/9 ${echo}\r\n\r\n`, ending: 'close' })
      await askBoth(lane, stream)
      for (const body of [
        `{"${SECRET_TEXTS.answer}": `,
        errorBody(echo, echo, echo),
        messagesErrorText(echo, echo),
      ]) {
        upstream.script(lane, { kind: 'whole', body })
        await askBoth(lane, stream)
      }
      const frames = [
        `data: ${errorBody(echo)}\n\n`,
        `event: error\ndata: ${messagesErrorText(echo, echo)}\n\n`,
      ]
      for (const frame of frames) {
        upstream.script(lane, { kind: 'stream', frames: [frame] })
        await askBoth(lane, stream)
      }
    }
    upstream.script('chat', { kind: 'stream', word: SECRET_TEXTS.answer, ending: 'error' })
    await askBoth('chat', true)
  }
  upstream.script('chat', {
    kind: 'whole',
    body: completionText(SECRET_TEXTS.answer, usageText(10, 5)).replace('chatcmpl', 'x'),
  })

  for (const name of ['tools0_tell', 'tools1_tell'])
    recorded('ann', await askMcp(program.url, KEYS.ann, 'tools/call', { name, arguments: {} }))

  // Requests that the gateway refuses itself.
  const asked = (body: string | object | undefined, key: string, method = 'POST', way = '/v1/messages') =>
    call(program.url, body, { key, path: path(way), headers, method })
  for (const body of [
    `{"model": ${SECRET_TEXTS.prompt}`,
    { model: SECRET_TEXTS.prompt, messages: SECRET_TEXTS.prompt },
    { ...request('chat', false), max_tokens: SECRET_TEXTS.prompt },
    { ...request('chat', false), messages: [{ role: SECRET_TEXTS.prompt, content: 1 }] },
    // A model's name and a path are logged, so that an operator can see what was requested.
    { ...request('nobody', false) },
    {
      ...request('chat', false),
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: `http://10.0.0.1/${SECRET_TEXTS.prompt}` } }],
        },
      ],
    },
  ])
    for (const way of ['/v1/chat/completions', '/v1/messages'])
      recorded('ann', await asked(body, KEYS.ann, 'POST', way))

  // Other clients, during these calls and after.
  upstream.script('chat', { kind: 'whole', content: 'for bob' })
  const bobs = { model: 'chat', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
  recorded('bob', await retryWhileShed(() => call(program.url, bobs, { key: KEYS.bob })))
  upstream.script('chat', { kind: 'status', status: 500, body: errorBody(UPSTREAM_KEYS.join(' ')) })
  recorded('bob', await retryWhileShed(() => call(program.url, bobs, { key: KEYS.bob })))
  recorded('bob', await call(program.url, { ...bobs, model: 'down' }, { key: KEYS.bob }))
  recorded('stranger', await asked(request('chat', false), `${KEYS.ann}x`))
  const signIn = ['/api/status', '/api/user/oidc/corp', '/api/user/oidc/corp/callback']
  for (const way of ['/', '/metrics', '/healthz', '/readyz', '/api/user/self', '/nothing', ...signIn])
    recorded('stranger', await call(program.url, undefined, { method: 'GET', path: path(way) }))
  const { status, body } = await manage(program.url, ACCESS, 'GET /api/user/self')
  received.ann += `${status} ${JSON.stringify(body)}\n`
  const bearer = { authorization: `Bearer ${METRICS}` }
  recorded('bob', await call(program.url, undefined, { method: 'GET', path: '/metrics', headers: bearer }))
}

/** All files below a folder as one text; in all of them, secrets must be encrypted. */
function contentsOf(folder: string, but: readonly string[]): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !but.includes(name) && statSync(join(folder, name)).isFile())
    .map((name) => `${name}\n${readFileSync(join(folder, name), 'latin1')}`)
    .join('\n')
}

/** The encodings of a text: plain, in JSON, in a URL, in base64 and in hexadecimal. */
function spellings(secret: string): string[] {
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    Buffer.from(secret).toString('hex'),
  ]
}

/** The lines that contain the secret, for the failure message; none is expected. */
function linesWith(text: string, secret: string | RegExp): string[] {
  const has = (line: string): boolean =>
    typeof secret === 'string' ? line.includes(secret) : secret.test(line)
  return text
    .split('\n')
    .filter(has)
    .map((line) => line.slice(0, 700))
    .slice(0, 5)
}

describe('a secret', () => {
  test('the requests of the leak test contain the secrets that are searched for', () => {
    expect(upstream.received('chat').length + upstream.received('claude').length).toBeGreaterThan(0)
    expect(received.ann).toContain(SECRET_TEXTS.answer)
    expect(tools.received('tools/call')).toHaveLength(2)
    expect(received.ann).toContain('-32001')
    expect(received.ann.split('\n').length).toBeGreaterThan(500)
    expect(program.log().filter(({ msg }) => msg === 'request').length).toBeGreaterThan(500)
  })

  test('a secret does not appear in the log, at any level, or on standard error', () => {
    expect(linesWith(program.out(), CANARY)).toEqual([])
    expect(linesWith(program.err(), CANARY)).toEqual([])
    expect(linesWith(program.out(), GATEWAY_SECRET)).toEqual([])
  })

  test('a secret does not appear in the data folder: keys are encrypted, prompts and responses are not stored', () => {
    const files = contentsOf(program.folder.path, ['gateway.yaml', 'secret'])
    expect(files).toContain('SQLite format 3')
    expect(CANARY.exec(files)?.[0]).toBeUndefined()
    for (const secret of [GATEWAY_SECRET, ...Object.values(KEYS), ACCESS.accessToken, ROOT.access_token])
      for (const spelling of spellings(secret)) expect(files).not.toContain(spelling)
  })

  test('the secret of one client never reaches another client', () => {
    expect(linesWith(received.bob, CANARY)).toEqual([])
    expect(received.bob).toContain('for bob')
    expect(linesWith(received.stranger, CANARY)).toEqual([])
  })

  test('a secret of the operator does not reach the client: keys, headers, addresses', () => {
    for (const secret of [...UPSTREAM_KEYS, HEADER, ...TOOL_KEYS, METRICS, CLIENT_SECRET, GATEWAY_SECRET])
      for (const spelling of spellings(secret)) expect(linesWith(received.ann, spelling)).toEqual([])
    for (const text of [
      `127.0.0.1:${upstream.port}`,
      new URL(tools.url).host,
      'canarypath9',
      SECRET_TEXTS.query,
      SECRET_TEXTS.sent,
    ])
      expect(linesWith(received.ann, text)).toEqual([])
  })
})
