import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { manage } from '../fixtures/account.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const NAMES: ReadonlySet<string> = new Set(['from', 'to', 'start_timestamp', 'end_timestamp'])
/** The end of the year 9999. */
const LAST = 253_402_300_799

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string }[]
  readonly responses: Readonly<Record<string, { readonly content?: object }>>
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(() => ({
    ...plainConfiguration('http://127.0.0.1:9/v1'),
    rate_limits: { global: { requests: 0 }, search: { requests: 0 }, critical: { requests: 0 } },
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

interface Query {
  readonly method: string
  readonly path: string
  /** The name of the time in it. */
  readonly name: string
  readonly isStream: boolean
}

async function queriesWithTimes(): Promise<Query[]> {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/openapi.json' })
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, Operation>> }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { parameters, responses }]) => {
      const isStream = 'text/event-stream' in (responses['200']?.content ?? {})
      return parameters
        .filter((one) => one.in === 'query' && NAMES.has(one.name))
        .map(({ name }) => ({ method: method.toUpperCase(), path, name, isStream }))
    }),
  )
}

const asRoot = (method: string, path: string) =>
  call(fixture.gateway.url, undefined, {
    method,
    path: path.replaceAll(/\{\w+\}/g, '1'),
    headers: { authorization: `Bearer ${ROOT.access_token}`, 'new-api-user': '1' },
  })

test('a time in a query beyond the year 9999, such as one in milliseconds, is a 400 that names it', async () => {
  const queries = await queriesWithTimes()
  expect(queries.length).toBeGreaterThan(20)
  for (const { method, path, name } of queries)
    for (const time of [LAST + 1, 1_795_315_200_000, 999_999_999_999_999]) {
      const { status, text } = await asRoot(method, `${path}?${name}=${time}`)
      expect([method, path, status, text]).toEqual([
        method,
        path,
        400,
        expect.stringContaining(`${name}: expected a time in Unix seconds`),
      ])
    }
})

test('no time in a query up to the year 9999 is an error of the gateway', async () => {
  for (const { method, path, name, isStream } of await queriesWithTimes())
    if (method === 'GET' && !isStream)
      for (const time of [0, LAST])
        expect([path, name, (await asRoot(method, `${path}?${name}=${time}`)).status < 500]).toEqual([
          path,
          name,
          true,
        ])
})

test('a time in a body beyond the year 9999 is a 400', async () => {
  const body = { from: 0, to: LAST + 1 }
  const { status } = await manage(fixture.gateway.url, ROOT_ACCOUNT, 'POST /api/usage/what-if', body)
  expect(status).toBe(400)
})
