import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }

const MODELS = ['one', 'pair', 'dead', 'slow']

let fixture: Fixture
let config: Record<string, unknown>
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    const made = {
      // So that the hold of a stream grows in small steps, until a budget is used up.
      options: { hold_tokens: 100, hold_wait: 0 },
      rate_limits: { global: { requests: 0, window: '1s' } },
      models: priced(MODELS),
      channels: [
        channel('one', upstream.baseUrl('one'), { keys: ['a-very-secret-key'] }),
        channel('pair', upstream.baseUrl('first'), { models: ['pair'], priority: 2 }),
        channel('second', upstream.baseUrl('second'), { models: ['pair'], priority: 1 }),
        channel('dead', 'http://127.0.0.1:1/v1'),
        channel('slow', upstream.baseUrl('slow'), { timeouts: { first_byte: '200ms' } }),
      ],
      users: [
        ROOT,
        user(2, 'ann', [token('ann'), token('short', { remain_quota: 3000 })], {
          access_token: ANN.accessToken,
        }),
        user(4, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
      ],
    }
    config = made
    return made
  })
})
afterAll(() => fixture?.close())

interface Row {
  readonly cause: string
  readonly error_status: number | null
  readonly reason: string
}

interface Detail extends Row {
  readonly quota: number
  readonly error: {
    readonly cause: string
    readonly status: number | null
    readonly type: string
    readonly code: string
    readonly message: string
    readonly tried: number
  } | null
  readonly attempts?: readonly { readonly message: string; readonly channel: string }[]
}

const get = async <Data>(account: Account, path: string): Promise<Data> => {
  const { status, data } = await manage<Data>(fixture.gateway.url, account, `GET ${path as `/${string}`}`)
  expect(status, path).toBe(200)
  return data
}
const idOf = ({ headers }: Pick<FullResponse, 'headers'>): string => String(headers['x-request-id'])
const credentialsOf = ({ id, accessToken }: Account) => ({
  authorization: accessToken,
  'gateway-user': String(id),
})

/** The CSV file of the calls that a query selects. */
async function csvOf(account: Account, query: string): Promise<FullResponse> {
  const path = `/api/log/${account === ADA ? '' : 'self/'}export?${query}`
  return call(fixture.gateway.url, undefined, { method: 'GET', path, headers: credentialsOf(account) })
}
// A call that was answered with an error is settled a moment later.
async function detailOf(answer: Pick<FullResponse, 'headers'>, account: Account = ADA): Promise<Detail> {
  const path = `/api/log/${account === ADA ? '' : 'self/'}${idOf(answer)}` as const
  await expect.poll(async () => (await manage(fixture.gateway.url, account, `GET ${path}`)).status).toBe(200)
  return get(account, path)
}

function failing(lane: string, status: number, body = errorBody('no')): void {
  fixture.upstream.script(lane, { kind: 'status', status, body })
}

describe('why a call failed', () => {
  test.each([
    [400, 'provider_refused', 400],
    [422, 'provider_refused', 422],
    [404, 'provider_unknown_model', 404],
    [429, 'provider_limited', 429],
    [401, 'provider_key', 500],
    [403, 'provider_key', 500],
    [407, 'provider_key', 500],
    [500, 'provider_failed', 500],
    [503, 'provider_failed', 503],
    [502, 'provider_failed', 500],
  ])(
    'a call that its provider answers with %i is listed with the cause of failure %s',
    async (given, cause, status) => {
      failing('one', given)
      const answer = await fixture.chat('ann', ask('one'))
      expect(answer.status).toBe(status)
      expect(await detailOf(answer)).toMatchObject({
        cause,
        error_status: status,
        quota: 0,
        error: { cause, status, tried: 1 },
      })
    },
  )

  test('a failed call has the cause that the provider was too slow, could not be reached, or sent a broken answer', async () => {
    fixture.upstream.script('slow', { kind: 'silence' })
    const slow = await fixture.chat('ann', ask('slow'))
    expect(await detailOf(slow)).toMatchObject({ cause: 'provider_timeout', error_status: 500 })
    const dead = await fixture.chat('ann', ask('dead'))
    expect(await detailOf(dead)).toMatchObject({ cause: 'provider_unreachable', error_status: 500 })
    fixture.upstream.script('one', { kind: 'whole', body: 'no JSON at all' })
    const unreadable = await fixture.chat('ann', ask('one'))
    expect(await detailOf(unreadable)).toMatchObject({ cause: 'provider_broken' })
    fixture.upstream.script('one', { kind: 'stream', events: 3, ending: 'reset' })
    const cut = await fixture.chat('ann', askStream('one'))
    expect(cut.status).toBe(200)
    expect(await detailOf(cut)).toMatchObject({ cause: 'provider_broken', error_status: 200, reason: 'cut' })
  })

  test('a call that fails after several attempts has the cause of the last one, and a successful call has no cause', async () => {
    failing('first', 502)
    fixture.upstream.script('second', { kind: 'whole', body: 'no JSON at all' })
    const failed = await detailOf(await fixture.chat('ann', ask('pair')))
    expect(failed).toMatchObject({ cause: 'provider_broken', error: { code: 'upstream_error', tried: 2 } })
    fixture.upstream.script('second', { kind: 'whole' })
    const rescued = await detailOf(await fixture.chat('ann', ask('pair')))
    expect(rescued).toMatchObject({ cause: '', error_status: null, error: null })
  })

  test('the call log and its CSV file state the cause of each failure, and can be filtered and summed up by it', async () => {
    failing('one', 429)
    const answer = await fixture.chat('ann', ask('one'))
    await detailOf(answer)
    for (const [account, path] of [[ADA, '/api/log/'] as const, [ANN, '/api/log/self'] as const]) {
      const page = await get<{ items: Row[]; total: number }>(
        account,
        `${path}?cause=provider_limited,provider_key&page_size=100`,
      )
      expect(page.total).toBeGreaterThan(1)
      const causes = new Set(page.items.map(({ cause }) => cause))
      expect(causes).toEqual(new Set(['provider_limited', 'provider_key']))
      const stat = `${path.replace(/\/$/, '')}/stat?cause=provider_limited`
      expect(await get(account, stat)).toMatchObject({ requests: 0, quota: 0 })
      const file = await csvOf(account, `request_id=${idOf(answer)}`)
      const [head = '', line = ''] = file.text.split('\r\n')
      const names = head.split(',')
      expect(line.split(',')[names.indexOf('cause')]).toBe('provider_limited')
      expect(line.split(',')[names.indexOf('error_status')]).toBe('429')
      expect(line.split(',')[names.indexOf('status')]).toBe('Failed')
    }
    const wrong = await manage(fixture.gateway.url, ADA, 'GET /api/log/?cause=bad_luck')
    expect(wrong.status).toBe(400)
  })

  test('the live stream of calls has the cause and the status of a failure', async () => {
    for (const [account, path] of [
      [ADA, '/api/log/stream'],
      [ANN, '/api/log/self/stream'],
    ] as const) {
      const headers = credentialsOf(account)
      const stream = await open(fixture.gateway.url, undefined, { method: 'GET', path, headers })
      failing('one', 429)
      const id = idOf(await fixture.chat('ann', ask('one')))
      await stream.until(`"request_id":"${id}"`)
      const [, data = ''] = new RegExp(`id: ${id}\ndata: (.*)\n`).exec(stream.text()) ?? []
      expect(JSON.parse(data)).toMatchObject({ cause: 'provider_limited', error_status: 429 })
      stream.abort()
    }
  })

  test('a stream that ends because the quota is used up has the cause spent, and one that a crash ends has the cause gateway', async () => {
    fixture.upstream.script('one', { kind: 'stream', events: Number.POSITIVE_INFINITY, usage: null })
    const spent = await (await fixture.live('short', askStream('one', { max_tokens: 50 }))).end()
    expect(await detailOf(spent)).toMatchObject({
      cause: 'spent',
      error_status: 200,
      error: { cause: 'spent', code: 'insufficient_quota' },
    })
    fixture.upstream.script('one', { kind: 'stream', events: 3, word: 'drip ', ending: 'stall' })
    const live = await fixture.live('ann', askStream('one'))
    await live.until('drip')
    await fixture.gateway.kill()
    await fixture.gateway.restart()
    expect(await detailOf(live)).toMatchObject({ cause: 'gateway', reason: 'crash' })
  })

  test('the details of a failed call have the message that the caller was sent, and for administrators that of each attempt', async () => {
    failing('first', 503, errorBody('overloaded at a-very-secret-key, see http://127.0.0.1:1/help'))
    failing('second', 400, errorBody('temperature: must be at most 2', 'invalid_request_error', 'bad_value'))
    const answer = await fixture.chat('ann', ask('pair'))
    const own = await detailOf(answer, ANN)
    expect(own.error).toEqual({
      cause: 'provider_refused',
      status: 400,
      type: 'invalid_request_error',
      code: 'bad_value',
      message: 'temperature: must be at most 2',
      tried: 2,
    })
    expect(own).not.toHaveProperty('attempts')
    const { attempts } = await detailOf(answer)
    expect(attempts?.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^overloaded at/),
      'temperature: must be at most 2',
    ])
    failing('one', 401, errorBody('the project proj_7 is suspended'))
    const refused = await fixture.chat('ann', ask('one'))
    expect((await detailOf(refused, ANN)).error?.message).not.toContain('proj_7')
    expect((await detailOf(refused)).attempts?.[0]?.message).toBe('the project proj_7 is suspended')
  })

  test('the error message that a caller was sent, and that is stored, contains neither an address nor a key', async () => {
    const address = fixture.upstream.baseUrl('one')
    failing('one', 400, errorBody(`bad model at ${address}/chat/completions with a-very-secret-key`))
    const answer = await fixture.chat('ann', ask('one'))
    for (const account of [ANN, ADA]) {
      const { error, attempts } = await detailOf(answer, account)
      expect(error?.message).toMatch(/^bad model at /)
      for (const text of [answer.text, JSON.stringify([error, attempts])]) {
        expect(text).not.toContain(new URL(address).host)
        expect(text).not.toContain('a-very-secret-key')
      }
    }
    // A member is not told which channel it was, nor what others said.
    expect(JSON.stringify(await detailOf(answer, ANN))).not.toMatch(/channel|attempts/)
  })

  test("where a provider's error message repeats the request, no 24 consecutive characters of the request are stored", async () => {
    const secret = 'The patient Maria Schneider has an appointment on Friday at noon'
    const repetitions = [
      secret,
      secret.toUpperCase(),
      secret.replaceAll(' ', '\n\t '),
      JSON.stringify(`"${secret}"`),
      secret.replaceAll(/[^ ]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
      secret.replaceAll(/[^ ]/g, (one) => `&#${one.charCodeAt(0)};`),
    ]
    for (const repeated of repetitions) {
      failing('one', 400, errorBody(`Invalid input: ${repeated} is too long`))
      const answer = await fixture.chat('ann', ask('one', { messages: [{ role: 'user', content: secret }] }))
      const { error, attempts } = await detailOf(answer)
      expect(error?.message).toMatch(/^Invalid input: "?\\?"?….{0,3} is too long$/)
      expect(attempts?.[0]?.message).toBe(error?.message)
    }
    const kept = [(await csvOf(ADA, '')).text, fixture.gateway.logs(), ...filesOf(fixture.gateway.dataDir)]
    const runs = Array.from({ length: secret.length - 23 }, (_, at) =>
      secret.slice(at, at + 24).toLowerCase(),
    )
    for (const text of kept) {
      const shown = withoutEscapes(text)
      expect(runs.filter((run) => shown.includes(run))).toEqual([])
    }
    const whole = 'Invalid input: the context of this model is at most 8,192 tokens'
    failing('one', 400, errorBody(whole))
    expect((await detailOf(await fixture.chat('ann', ask('one')))).error?.message).toBe(whole)
  })

  test('a short prompt that an error message quotes is removed from the stored message; tool names and roles stay', async () => {
    failing('one', 400, errorBody('cannot read "Maria Schneider" of assistant with get_weather'))
    const messages = [
      { role: 'user', content: 'maria  schneider' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
    ]
    const answer = await fixture.chat('ann', ask('one', { messages }))
    expect((await detailOf(answer)).error?.message).toBe('cannot read "…" of assistant with get_weather')
  })

  test('the stored error message of a call has at most 300 characters, and is empty without error_details', async () => {
    failing('one', 400, errorBody(`a b ${'0123456789'.repeat(100)}`))
    const long = await detailOf(await fixture.chat('ann', ask('one')))
    expect(long.error?.message).toHaveLength(300)
    failing('one', 400, '<html><head><title>Bad</title></head><body>no  luck</body></html>')
    expect((await detailOf(await fixture.chat('ann', ask('one')))).attempts?.[0]?.message).toMatch(
      /^Bad\s+no {2}luck$/,
    )
    await fixture.gateway.apply({ ...config, options: { error_details: false } })
    failing('one', 400, errorBody('not to be kept', 'invalid_request_error', 'bad_value'))
    const silent = await detailOf(await fixture.chat('ann', ask('one')))
    await fixture.gateway.apply(config)
    expect(silent.error).toEqual({
      cause: 'provider_refused',
      status: 400,
      type: 'invalid_request_error',
      code: 'bad_value',
      message: '',
      tried: 1,
    })
    expect(silent.attempts?.[0]?.message).toBe('')
  })

  test('failures by cause, model, key, user and channel add up to the failed calls of the period', async () => {
    for (const [account, path, dimensions] of [
      [ADA, '/api/usage', ['cause', 'model', 'token', 'user', 'channel', 'none']] as const,
      [ANN, '/api/usage/self', ['cause', 'model', 'token', 'none']] as const,
    ]) {
      const { totals } = await get<{ totals: { failed: number } }>(account, path)
      expect(totals.failed).toBeGreaterThan(10)
      for (const by of dimensions) {
        const { series, other, total } = await get<{
          series: { key: string; calls: number[] }[]
          other: { calls: number[] } | null
          total: number
        }>(account, `${path}/failures?by=${by}&top=20`)
        const sum = [...series, ...(other ? [other] : [])].flatMap(({ calls }) => calls)
        expect(
          sum.reduce((one, two) => one + two, 0),
          by,
        ).toBe(totals.failed)
        expect(total).toBe(totals.failed)
        if (by === 'cause') expect(series.map(({ key }) => key)).toContain('provider_refused')
      }
    }
    const wrong = await manage(fixture.gateway.url, ANN, 'GET /api/usage/self/failures?by=channel')
    expect(wrong.status).toBe(400)
    expect((await manage(fixture.gateway.url, ANN, 'GET /api/usage/failures')).status).toBe(403)
  })
})

/** The content of all files below a folder, with a character for each byte. */
function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))
}

/** A text in lower case, with its escapes of JSON and HTML decoded and runs of white space as one space. */
function withoutEscapes(text: string): string {
  return text
    .replaceAll(/\\u([\da-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/&#(\d{1,4});/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replaceAll(/\\[nt]|\s/g, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .toLowerCase()
}
