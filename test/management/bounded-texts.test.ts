import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const PLAIN = 2048
const KEY = 8192
const LIST = 65_536

interface Schema {
  readonly [keyword: string]: unknown
}
interface Body {
  readonly method: string
  readonly path: string
  readonly schema: Schema
}
/**
 * The position of a text in a body; `bytes` is its maximum length, undefined where the description has none.
 */
interface Place {
  readonly at: readonly string[]
  readonly bytes: number | undefined
}

let fixture: Fixture
let bodies: readonly Body[]
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('declared', upstream.baseUrl('declared'), { models: ['d'] })],
    users: [ROOT, user(2, 'ann', [], { access_token: ANN.accessToken })],
  }))
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/openapi.json' })
  const paths: Record<string, Record<string, Schema>> = JSON.parse(text).paths
  bodies = Object.entries(paths).flatMap(([path, methods]) =>
    isManaged(path) ? Object.entries(methods).flatMap(([method, one]) => bodyOf(method, path, one)) : [],
  )
})
afterAll(() => fixture.close())

/** Calls of the playground are calls of models, not management requests. */
function isManaged(path: string): boolean {
  return path.startsWith('/api/') && !path.startsWith('/api/playground/')
}

function bodyOf(method: string, path: string, operation: Schema): Body[] {
  const body = operation['requestBody'] as { content: Record<string, { schema: Schema }> } | undefined
  const schema = body?.content['application/json']?.schema
  return schema ? [{ method: method.toUpperCase(), path, schema }] : []
}

const asRoot = (request: Parameters<typeof manage>[2], body?: object | string) =>
  manage<Record<string, unknown>>(fixture.gateway.url, ROOT_ACCOUNT, request, body)
const asAnn = (request: Parameters<typeof manage>[2], body?: object) =>
  manage<{ items: Record<string, unknown>[] }>(fixture.gateway.url, ANN, request, body)

/** The positions of texts that a schema permits. */
function placesIn(schema: Schema, at: readonly string[] = []): Place[] {
  const bound = schema['x-max-bytes']
  if (typeof bound === 'number') return [{ at, bytes: bound }]
  if ('const' in schema || 'enum' in schema) return []
  // Beside properties, composed schemas only restrict them.
  const composed = 'properties' in schema ? [] : ['anyOf', 'oneOf', 'allOf']
  const parts = composed.flatMap((name) => (schema[name] as Schema[] | undefined) ?? [])
  if (parts.length > 0) return parts.flatMap((part) => placesIn(part, at))
  const [type, ...others] = [schema['type']].flat()
  if (others.length > 0) return [type, ...others].flatMap((one) => placesIn({ ...schema, type: one }, at))
  switch (type) {
    case 'string':
      // `maxLength` counts characters, which have at most four bytes each.
      return Number(schema['maxLength']) * 4 <= PLAIN ? [] : [{ at, bytes: undefined }]
    case 'array':
      return placesIn((schema['items'] ?? {}) as Schema, [...at, '0'])
    case 'object': {
      const { properties = {}, additionalProperties: more } = schema as {
        properties?: Record<string, Schema>
        additionalProperties?: Schema | false
      }
      return [
        ...Object.entries(properties).flatMap(([name, part]) => placesIn(part, [...at, name])),
        ...(more ? placesIn(more, [...at, 'unknown']) : []),
      ]
    }
    case 'integer':
    case 'number':
    case 'boolean':
    case 'null':
      return []
    default:
      return [{ at, bytes: undefined }]
  }
}

function bodyWith([name, ...inner]: readonly string[], text: string): unknown {
  if (name === undefined) return text
  return name === '0' ? [bodyWith(inner, text)] : { [name]: bodyWith(inner, text) }
}

test('the OpenAPI description gives every text in the body of a management request a maximum length', () => {
  const places = bodies.flatMap(({ method, path, schema }) =>
    placesIn(schema).map((place) => ({ name: `${method} ${path} ${place.at.join('.')}`, ...place })),
  )
  expect(places.length).toBeGreaterThan(50)
  expect(places.filter(({ bytes }) => bytes === undefined).map(({ name }) => name)).toEqual([])
})

test('a management request with a text above its maximum length is a 400 that names the field and the limit', async () => {
  const wrong: string[] = []
  for (const { method, path, schema } of bodies) {
    for (const { at, bytes = 0 } of placesIn(schema)) {
      // Two bytes a character, because the limit counts bytes of UTF-8.
      const given = bodyWith(at, 'é'.repeat(bytes / 2 + 1))
      const request = `${method as 'POST'} ${path.replace('{id}', '2') as '/'}` as const
      const { status, message } = await asRoot(request, given as object)
      const field = at[0] ?? ''
      if (status !== 400 || !message.includes(`${bytes} bytes`) || !message.includes(field))
        wrong.push(`${request} ${at.join('.')}: ${status} ${message}`)
    }
  }
  expect(wrong).toEqual([])
})

describe('the texts of a key', () => {
  const made = (name: string, fields: object) =>
    asAnn('POST /api/token/', { name, expired_time: -1, remain_quota: 0, ...fields })
  const changed = async (fields: object) => {
    const { data } = await asAnn('GET /api/token/')
    return asAnn('PUT /api/token/', { id: data.items[0]?.['id'], ...fields })
  }
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, index) => `10.0.${index >> 8}.${index & 255}`).join('\n')

  test.each([
    ['model_limits', 'm'.repeat(LIST), 'm'.repeat(LIST + 1), `${LIST} bytes`],
    ['allow_ips', addresses(1000), addresses(1001), '1000 entries'],
    ['allow_ips', `10.0.0.1${' '.repeat(16_376)}`, `10.0.0.1${' '.repeat(16_377)}`, '16384 bytes'],
    ['vendor_routes', `{}${' '.repeat(PLAIN - 2)}`, `{}${' '.repeat(PLAIN - 1)}`, `${PLAIN} bytes`],
  ])(
    'the field %s of an API key has its own maximum length, at creation and at changes',
    async (field, longest, longer, limit) => {
      expect(await made('longest', { [field]: longest })).toMatchObject({ status: 200 })
      for (const refused of [await made('longer', { [field]: longer }), await changed({ [field]: longer })])
        expect(refused).toMatchObject({ status: 400, message: `${field}: expected at most ${limit}` })
    },
  )
})

describe('the texts of a channel', () => {
  const fields = (of: object): object => ({
    name: 'a channel',
    type: 1,
    key: 'sk-upstream',
    base_url: 'https://upstream.example',
    models: 'm',
    ...of,
  })
  const made = (name: string, of: object) => asRoot('POST /api/channel/', fields({ name, ...of }))

  test('each key of a channel may have up to 8 KiB, and all its keys together up to 64 KiB', async () => {
    const keys = (count: number, bytes: number) =>
      Array.from({ length: count }, (_, index) => String(index).padEnd(bytes, 'k')).join('\n')
    expect(await made('one', { key: keys(1, KEY) })).toMatchObject({ status: 200 })
    const { data } = await made('several', { key: keys(63, 1024) })
    expect(await made('longer', { key: keys(2, KEY + 1) })).toMatchObject({
      status: 400,
      message: `key: expected at most ${KEY} bytes a key`,
    })
    const id = (data['ids'] as number[])[0]
    for (const refused of [
      await made('more', { key: keys(64, 1024) }),
      await asRoot('PUT /api/channel/', { id, key: keys(64, 1024) }),
    ])
      expect(refused).toMatchObject({ status: 400, message: `key: expected at most ${LIST} bytes` })
  })

  test("a channel's system prompt may have up to 64 KiB, and the rest of its `setting` field another 64 KiB", async () => {
    const setting = (prompt: number, note: number) => ({
      setting: JSON.stringify({ note: 'n'.repeat(note), system_prompt: 'p'.repeat(prompt) }),
    })
    // {"note":""} has 11 bytes.
    expect(await made('both', setting(LIST, LIST - 11))).toMatchObject({ status: 200, message: '' })
    expect(await made('prompt', setting(LIST + 1, 1))).toMatchObject({
      status: 400,
      message: `setting: system_prompt: expected at most ${LIST} bytes`,
    })
    expect(await made('note', setting(1, LIST - 10))).toMatchObject({
      status: 400,
      message: `setting: expected at most ${LIST} bytes`,
    })
  })

  test("a channel's param_override may have up to 64 KiB, and an unknown field up to 2 KiB", async () => {
    const mapping = (bytes: number) => JSON.stringify({ set: 's'.repeat(bytes - 10) })
    expect(await made('mappings', { param_override: mapping(LIST), tag: 't'.repeat(PLAIN) })).toMatchObject({
      status: 200,
      message: '',
    })
    expect(await made('tag', { tag: ['t'.repeat(PLAIN + 1)] })).toMatchObject({
      status: 400,
      message: `tag: expected at most ${PLAIN} bytes`,
    })
  })
})

test('an option with a JSON object as its value may be as long as a list field, and any other option as long as a text field', async () => {
  const set = (key: string, value: string) => asRoot('PUT /api/option/', { key, value })
  expect(await set('RetryTimes', `2${' '.repeat(PLAIN)}`)).toMatchObject({ status: 200 })
  expect(await set('RetryTimes', '2'.repeat(PLAIN + 1))).toMatchObject({
    status: 400,
    message: `value: expected at most ${PLAIN} bytes`,
  })
  expect(await set('ModelRatio', `{"m": 1}${' '.repeat(LIST - 8)}`)).toMatchObject({ status: 200 })
  expect(await set('ModelRatio', `{"m": 1}${' '.repeat(LIST - 7)}`)).toMatchObject({
    status: 400,
    message: `value: expected at most ${LIST} bytes`,
  })
})

describe('the refusal of a large body', () => {
  const many = (count: number): readonly number[] => Array.from({ length: count }, () => 1)
  const token = (fields: object) => ({ name: 'large', expired_time: -1, remain_quota: 0, ...fields })
  const TOO_MANY = 'expected at most 20000 values in lists and objects'

  test.each(['guards', 'toolsets'])(
    'a key whose %s have hundreds of thousands of entries is refused for their number',
    async (field) => {
      const { data } = await asAnn('GET /api/token/')
      const fields = { [field]: many(500_000) }
      for (const refused of [
        await asAnn('POST /api/token/', token(fields)),
        await asAnn('PUT /api/token/', { id: data.items[0]?.['id'], ...fields }),
      ])
        expect(refused).toMatchObject({ status: 400, message: TOO_MANY })
    },
  )

  test('the values of all lists and objects in a body count, however they are nested', async () => {
    // 100 lists of 200 values, and these lists themselves.
    const nested = Array.from({ length: 100 }, () => ({ of: many(199) }))
    expect(await asRoot('PUT /api/models/prices', { items: nested })).toMatchObject({
      status: 400,
      message: TOO_MANY,
    })
  })

  test('a message names at most ten faults, and the number of the others', async () => {
    const { status, message } = await asAnn('POST /api/token/', token({ guards: many(15_000) }))
    expect(status).toBe(400)
    expect(message.split('; ')).toHaveLength(11)
    expect(message).toMatch(/^guards\.0: expected .*; guards\.9: expected [^;]*; and 14990 more$/)
  })

  test('a message about long names has at most 4,096 characters of them', async () => {
    const name = 'u'.repeat(900_000)
    const guard = await asRoot('POST /api/guards', {
      name: 'g',
      do: 'block',
      match: { secrets: true },
      [name]: 1,
    })
    const refused = [guard, await asRoot('POST /api/channel/batch', { ids: [1], [name]: 1 })]
    for (const { status, message } of refused) {
      expect(status).toBe(400)
      expect(message).toMatch(/^u{4096}…$/)
    }
  })

  test('a guard may have 10,000 words', async () => {
    const words = Array.from({ length: 10_000 }, (_, index) => `word ${index}`)
    const made = await asRoot('POST /api/guards', { name: 'words', do: 'flag', match: { words } })
    expect(made).toMatchObject({ status: 200, message: '' })
  })
})
