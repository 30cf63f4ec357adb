import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { insertion } from '../stores/usage-log-rows.ts'
import { addSums } from '../stores/usage-sums-rows.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }
const ADA = { id: 4, accessToken: 'the-access-token-of-ada' }

type Row = Readonly<Record<string, unknown>> & { readonly request_id: string; readonly created_at: number }
interface RowPage {
  readonly page: number
  readonly page_size: number
  readonly total: number
  readonly items: readonly Row[]
}

const DAY = 86_400
/** A midnight (UTC) ten days ago, in Unix seconds. */
const MIDNIGHT = (Math.floor(Date.now() / 1000 / DAY) - 10) * DAY
/** The number of rows of cyd, one a second from that midnight: more than two chunks of an export. */
const MANY = 4500

let fixture: Fixture
/** The ids of the calls that were made over the socket, oldest first. */
const made: string[] = []

beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0, window: '1s' } },
    models: priced(['m', 'n']),
    channels: [channel('m', upstream.baseUrl('m')), channel('n', upstream.baseUrl('n'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('formula', { name: '=1+1,"x"' })], {
        access_token: ANN.accessToken,
      }),
      user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
      user(4, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
      user(5, 'cyd', [token('cyd')]),
    ],
  }))
  const calls = [
    ['ann', 'm', 100, 50],
    ['formula', 'n', 10, 5],
    ['ben', 'm', 20, 10],
  ] as const
  for (const [key, model, prompt, output] of calls) {
    fixture.upstream.script(model, {
      kind: 'whole',
      usage: usageText(prompt, output, key === 'ann' ? 40 : 0),
    })
    const answer = await fixture.chat(key, ask(model))
    if (answer.status !== 200) throw new Error(answer.text)
    made.push(String(answer.headers['x-request-id']))
  }
  await fixture.gateway.stop()
  withOldRows()
  await fixture.gateway.restart()
})
afterAll(() => fixture?.close())

/**
 * Writes rows that only time could produce: rows of ten days ago with their sums, and sums of a hundred days
 * ago, whose rows are deleted.
 */
function withOldRows(): void {
  const database = databaseOf(fixture.gateway.dataDir)
  const cyd = database.token('token-cyd')
  const rows = Array.from({ length: MANY }, (_, index) => {
    const ms = (MIDNIGHT + index) * 1000
    return {
      id: idAt(ms - 500),
      ended_ms: ms,
      user_id: 5,
      token_id: cyd.id,
      model: 'm',
      requested_model: 'm',
      upstream_model: 'm',
      channel: 'm',
      group_name: 'default',
      input_tokens: 1,
      output_tokens: 1,
      quota: 5,
      price_version: 'v',
      duration_ms: 500,
      first_byte_ms: 100,
      stream: 0,
      reason: 'complete',
      kind: 'chat',
    }
  })
  database.write(insertion('usage_log', ...rows))
  const by = { user_id: 5, token_id: cyd.id, channel: 'm' }
  for (const [day, of] of [
    [MIDNIGHT / DAY, MANY],
    [MIDNIGHT / DAY - 90, 7],
  ] as const)
    database.write(
      addSums('day', day, by, { requests: of, input_tokens: of, output_tokens: of, quota: 5 * of }),
    )
}

function idAt(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${randomBytes(6).toString('hex')}`
}

const list = async (account: typeof ANN, path: `/${string}`): Promise<RowPage> => {
  const { status, data } = await manage<RowPage>(fixture.gateway.url, account, `GET ${path}`)
  expect(status).toBe(200)
  return data
}
const idsOf = ({ items }: RowPage): string[] => items.map((row) => row.request_id)
const stat = async (account: typeof ANN, path: `/${string}`): Promise<Record<string, number>> => {
  const { status, data } = await manage<Record<string, number>>(fixture.gateway.url, account, `GET ${path}`)
  expect(status).toBe(200)
  return data
}
const file = async (account: typeof ANN, path: string) =>
  call(fixture.gateway.url, undefined, {
    method: 'GET',
    path,
    headers: { authorization: account.accessToken, 'gateway-user': String(account.id) },
  })

describe('rows that an account may see', () => {
  test.each(['/api/log/', '/api/log/stat', '/api/log/export', '/api/data/'] as const)(
    'a usage endpoint for the calls of all users is open to administrators only: %s',
    async (path) => {
      expect(await manage(fixture.gateway.url, ANN, `GET ${path}`)).toMatchObject({
        status: 403,
        success: false,
      })
      const nobody = { id: 2, accessToken: 'nobodys' }
      expect((await manage(fixture.gateway.url, nobody, `GET ${path}`)).status).toBe(401)
      expect((await file(ADA, path)).status).toBe(200)
    },
  )

  test.each(['/api/log/self', '/api/log/self/stat', '/api/log/self/export', '/api/data/self'] as const)(
    "a usage endpoint for the account's own calls is open to every account: %s",
    async (path) => {
      expect((await file(ANN, path)).status).toBe(200)
      expect((await file({ ...ANN, accessToken: 'sk-ann' }, path)).status).toBe(401)
    },
  )

  test('the usage log of an account has only its own calls, without channel and upstream model', async () => {
    const page = await list(ANN, '/api/log/self')
    expect(idsOf(page)).toEqual([made[1], made[0]])
    for (const row of page.items) {
      expect(row).not.toHaveProperty('channel')
      expect(row).not.toHaveProperty('upstream_model')
    }
    expect(idsOf(await list(ANN, '/api/log/self?username=ben'))).toEqual([made[1], made[0]])
    expect(idsOf(await list(ANN, '/api/log/self?channel=nowhere'))).toEqual([made[1], made[0]])
    expect(idsOf(await list(ANN, `/api/log/self?request_id=${made[2]}`))).toEqual([])
  })
})

describe('GET /api/log/', () => {
  test('GET /api/log/ returns a page of usage rows with all fields that are recorded for a call', async () => {
    const page = await list(ADA, `/api/log/?request_id=${made[0]}`)
    const now = Date.now() / 1000
    expect(page).toEqual({
      page: 1,
      page_size: 10,
      total: 1,
      items: [
        {
          id: made[0],
          request_id: made[0],
          created_at: expect.any(Number),
          type: 2,
          user_id: 2,
          username: 'ann',
          token_id: expect.any(Number),
          token_name: 'token-ann',
          model_name: 'm',
          requested_model: 'm',
          upstream_model: 'm',
          channel: 'm',
          channel_id: expect.any(Number),
          group: 'default',
          // 60 prompt tokens at 1, 40 cached ones at a quarter, 50 output tokens at 4.
          quota: 60 + 10 + 200,
          // Three quarters of the input price for each cached token.
          cache_saved: 30,
          cache_surcharge: 0,
          cache: '',
          hit_saved: 0,
          session: '',
          cache_break: '',
          cache_verdict: '',
          guards: '',
          prompt_tokens: 100,
          completion_tokens: 50,
          cached_tokens: 40,
          cache_write_5m_tokens: 0,
          cache_write_1h_tokens: 0,
          cache_write_30m_tokens: 0,
          cache_write_12h_tokens: 0,
          reasoning_tokens: 0,
          web_searches: 0,
          audio_input_tokens: 0,
          image_input_tokens: 0,
          audio_output_tokens: 0,
          image_output_tokens: 0,
          seconds: 0,
          characters: 0,
          images: 0,
          search_units: 0,
          kind: 'chat',
          use_time: expect.any(Number),
          duration_ms: expect.any(Number),
          first_byte_ms: expect.any(Number),
          is_stream: false,
          reason: 'complete',
          price_version: expect.any(String),
          price_incomplete: false,
          service_tier: 'standard',
          requested_service_tier: '',
          transport: 'http',
          batch: '',
          custom_id: '',
          batch_saved: 0,
          region: '',
          note: '',
          cause: '',
          error_status: null,
          content_address: '',
          content_sha256: '',
        },
      ],
    })
    const created = page.items[0]?.created_at ?? 0
    expect(created).toBeGreaterThan(now - 300)
    expect(created).toBeLessThanOrEqual(now)
  })

  test('GET /api/log/ returns the newest usage rows first, in pages of at most 100', async () => {
    const first = await list(ADA, '/api/log/?page_size=1000')
    expect(first).toMatchObject({ page: 1, page_size: 100, total: MANY + 3 })
    expect(idsOf(first).slice(0, 3)).toEqual(made.toReversed())
    const times = first.items.map((row) => row.created_at)
    expect(times).toEqual(times.toSorted((one, other) => other - one))
    const last = await list(ADA, '/api/log/?p=46&page_size=100')
    expect(last).toMatchObject({ page: 46, total: MANY + 3 })
    expect(last.items).toHaveLength(3)
    expect(last.items.at(-1)).toMatchObject({ created_at: MIDNIGHT })
    expect((await list(ADA, '/api/log/?p=47&page_size=100')).items).toEqual([])
  })

  test.each<[string, string, readonly number[]]>([
    ['a user', 'username=ben', [2]],
    ['an unknown user', 'username=nobody', []],
    ['a token', 'token_name=token-ann', [0]],
    ['a model', 'model_name=n', [1]],
    ['a channel', 'channel=n', [1]],
    ['a group', 'group=default&model_name=n', [1]],
    ['a group without calls', 'group=vip', []],
    ['the kind that there is', 'type=2&username=ben', [2]],
    ['any kind', 'type=0&username=ben', [2]],
    ['another kind', 'type=5&username=ben', []],
    ['a time', `start_timestamp=${MIDNIGHT + DAY}`, [2, 1, 0]],
    [
      'what is empty, which filters nothing',
      'username=ben&model_name=&start_timestamp=&end_timestamp=0',
      [2],
    ],
  ])('GET /api/log/ can be filtered by %s', async (_, query, expected) => {
    expect(idsOf(await list(ADA, `/api/log/?${query}`))).toEqual(expected.map((index) => made[index]))
  })

  test('GET /api/log/ includes the calls at both ends of a time range, whether one user or all users are selected', async () => {
    for (const who of ['', '&username=cyd']) {
      const time = `start_timestamp=${MIDNIGHT + 10}&end_timestamp=${MIDNIGHT + 19}`
      const { total, items } = await list(ADA, `/api/log/?${time}${who}&page_size=20`)
      expect(total).toBe(10)
      expect(items.map((row) => row.created_at)).toEqual(
        Array.from({ length: 10 }, (_unused, index) => MIDNIGHT + 19 - index),
      )
    }
  })

  test.each(['start_timestamp=yesterday', 'end_timestamp=-5', 'type=x'])(
    'GET /api/log/ with %s is a 400',
    async (query) => {
      const answer = await manage(fixture.gateway.url, ADA, `GET /api/log/?${query}`)
      expect(answer).toMatchObject({ status: 400, success: false })
      expect(answer.message).toContain(query.split('=')[0])
    },
  )
})

describe('GET /api/log/stat', () => {
  test('GET /api/log/stat sums up the selected usage rows, and those of the last minute', async () => {
    expect(await stat(ADA, '/api/log/stat?username=ann')).toMatchObject({
      quota: 270 + 30,
      requests: 2,
      prompt_tokens: 110,
      completion_tokens: 55,
      cached_tokens: 40,
      // The calls of this test were made within the last minute.
      rpm: 2,
      tpm: 165,
    })
    expect(await stat(ANN, '/api/log/self/stat')).toMatchObject({ quota: 300, requests: 2, rpm: 2 })
    expect(await stat(ADA, `/api/log/stat?request_id=${made[2]}`)).toMatchObject({ quota: 60, requests: 1 })
    expect(await stat(ADA, '/api/log/stat?model_name=n')).toMatchObject({ quota: 30, requests: 1 })
    expect(await stat(ADA, '/api/log/stat?type=5')).toMatchObject({ quota: 0, requests: 0, rpm: 0, tpm: 0 })
  })

  test('GET /api/log/stat includes the daily sums of days whose usage rows have been deleted', async () => {
    expect(await stat(ADA, '/api/log/stat?username=cyd')).toMatchObject({
      requests: MANY + 7,
      quota: 5 * (MANY + 7),
      rpm: 0,
    })
    const until = `end_timestamp=${MIDNIGHT - 1}`
    expect(await stat(ADA, `/api/log/stat?username=cyd&${until}`)).toMatchObject({ requests: 7, quota: 35 })
  })

  test('GET /api/log/stat sums up the usage rows themselves if a period begins or ends within a day', async () => {
    const part = `start_timestamp=${MIDNIGHT + 10}&end_timestamp=${MIDNIGHT + 19}`
    expect(await stat(ADA, `/api/log/stat?${part}`)).toMatchObject({ requests: 10, quota: 50 })
    const rest = `start_timestamp=${MIDNIGHT + 10}&username=cyd`
    expect(await stat(ADA, `/api/log/stat?${rest}`)).toMatchObject({ requests: MANY - 10 })
  })
})

describe('GET /api/log/export', () => {
  const lines = (text: string): string[] => text.split('\r\n')

  test('GET /api/log/export returns a CSV file of all selected usage rows, the newest first', async () => {
    const { headers, text } = await file(ADA, '/api/log/export')
    expect(headers['content-type']).toBe('text/csv; charset=utf-8')
    expect(headers['content-disposition']).toMatch(/^attachment; filename="[\w.-]+\.csv"$/)
    const [header = '', ...rows] = lines(text)
    expect(header.split(',')).toEqual(expect.arrayContaining(['request_id', 'username', 'channel', 'quota']))
    expect(rows.at(-1)).toBe('')
    expect(rows).toHaveLength(MANY + 3 + 1)
    expect(new Set(rows).size).toBe(rows.length)
    expect(rows.slice(0, 3).map((row) => row.split(',')[0])).toEqual(made.toReversed())
    const of = `start_timestamp=${MIDNIGHT}&end_timestamp=${MIDNIGHT + 4}&model_name=m`
    expect(lines((await file(ADA, `/api/log/export?${of}`)).text)).toHaveLength(5 + 2)
    expect(lines((await file(ADA, '/api/log/export?type=1')).text)).toEqual([header, ''])
  })

  test('the CSV file of an account has only its own calls, without channel and upstream model', async () => {
    const [header = '', ...rows] = lines((await file(ANN, '/api/log/self/export')).text)
    expect(header).not.toMatch(/channel|upstream/)
    expect(rows.map((row) => row.split(',')[0])).toEqual([made[1], made[0], ''])
  })

  test('the CSV file of calls quotes fields where necessary, and neutralises formulas in names', async () => {
    const { text } = await file(ANN, '/api/log/self/export?model_name=n')
    expect(text).toContain(`,"'=1+1,""x""",n,`)
  })

  test('GET /api/log/export answers an invalid filter with a 400 instead of a CSV file', async () => {
    const { status, headers } = await file(ADA, '/api/log/export?type=x')
    expect(status).toBe(400)
    expect(headers['content-type']).toBe('application/json')
  })

  test('a client that leaves during GET /api/log/export is logged with status 499, and causes no unforeseen error', async () => {
    const headers = { authorization: ADA.accessToken, 'gateway-user': String(ADA.id) }
    // Repeated, because the whole file may be sent before the client leaves.
    const leave = async (): Promise<string> => {
      const live = await open(fixture.gateway.url, undefined, {
        method: 'GET',
        path: '/api/log/export',
        headers,
      })
      live.abort()
      return fixture.gateway.logs()
    }
    // 499 is the logged status of a response whose client left.
    await expect.poll(leave).toMatch(/"path":"\/api\/log\/export","status":499/)
    expect(fixture.gateway.logs()).not.toContain('unforeseen error')
  })
})

describe('GET /api/data/', () => {
  test('GET /api/data/ returns the use of each model on each day, for all users', async () => {
    const { data } = await manage(fixture.gateway.url, ADA, 'GET /api/data/')
    const today = Math.floor(Date.now() / 1000 / DAY) * DAY
    expect(data).toEqual([
      { created_at: MIDNIGHT, model_name: 'm', count: MANY, quota: 5 * MANY, token_used: 2 * MANY },
      { created_at: today, model_name: 'm', count: 2, quota: 270 + 60, token_used: 150 + 30 },
      { created_at: today, model_name: 'n', count: 1, quota: 30, token_used: 15 },
    ])
  })

  test('GET /api/data/ can be limited to one user, who is then named, and to the requested days', async () => {
    const old = MIDNIGHT - 90 * DAY
    const days = `start_timestamp=${old + 5}&end_timestamp=${old + DAY}`
    expect((await manage(fixture.gateway.url, ADA, `GET /api/data/?username=cyd&${days}`)).data).toEqual([
      { created_at: old, model_name: 'm', username: 'cyd', count: 7, quota: 35, token_used: 14 },
    ])
    expect((await manage(fixture.gateway.url, ADA, 'GET /api/data/?username=nobody')).data).toEqual([])
  })

  test("GET /api/data/self returns the account's own use of each model on each day", async () => {
    const { data } = await manage(fixture.gateway.url, BEN, 'GET /api/data/self')
    expect(data).toEqual([
      {
        created_at: expect.any(Number),
        model_name: 'm',
        username: 'ben',
        count: 1,
        quota: 60,
        token_used: 30,
      },
    ])
  })

  test('GET /api/data/ covers at most 366 days', async () => {
    const days = (n: number): string =>
      `start_timestamp=${MIDNIGHT - (n - 1) * DAY}&end_timestamp=${MIDNIGHT}`
    expect((await manage(fixture.gateway.url, ADA, `GET /api/data/?${days(366)}`)).status).toBe(200)
    const refused = await manage(fixture.gateway.url, ADA, `GET /api/data/?${days(367)}`)
    expect(refused).toMatchObject({ status: 400, success: false })
    expect(refused.message).toContain('366')
  })
})
