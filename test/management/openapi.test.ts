import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openApiDocument } from '../../src/api/openapi.ts'
import { defineEndpoint, isCallEndpoint } from '../../src/api/endpoint.ts'
import { manage } from '../fixtures/account.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall } from '../fixtures/form.ts'
import { describedPath, filledPath, ROUTES } from '../fixtures/routes.ts'

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly object[]
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: object }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> }
  readonly responses: Record<
    string,
    { readonly headers?: object; readonly content: Record<string, { readonly schema: object }> }
  >
}

interface Part {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Part>>
  readonly additionalProperties?: Part | false
  readonly items?: Part
  readonly anyOf?: readonly Part[]
}

interface Document {
  readonly openapi: string
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, object>; readonly securitySchemes: object }
}

const ADA = { id: 3, accessToken: 'the-access-token-of-ada' }

let fixture: Fixture
let served: FullResponse
let document: Document
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0, window: '1s' } },
    models: priced(['m', 'messages']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('spent', { remain_quota: 0, unlimited_quota: false })]),
      user(3, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
    ],
  }))
  served = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/openapi.json' })
  document = JSON.parse(served.text)
})
afterAll(() => fixture?.close())

const operations = (of = document): { path: string; method: string; operation: Operation }[] =>
  Object.entries(of.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

const operationAt = (method: string, path: string): Operation => {
  const operation = document.paths[path]?.[method]
  if (!operation) throw new Error(`nothing is said of ${method} ${path}`)
  return operation
}

describe('GET /openapi.json', () => {
  test('GET /openapi.json returns JSON without authentication', () => {
    expect(served.status).toBe(200)
    expect(served.headers['content-type']).toBe('application/json')
    expect(document.openapi).toMatch(/^3\.1\./)
  })

  test('GET /openapi.json returns the same bytes each time', async () => {
    const again = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/openapi.json' })
    expect(again.text).toBe(served.text)
  })

  test('the OpenAPI description of model calls has Idempotency-Key, Cache-Control, and the headers that answer them', () => {
    const headersOf = ({ parameters }: Operation): string[] =>
      parameters.filter((one) => one.in === 'header').map(({ name }) => name)
    const answered = ({ responses }: Operation): string[] =>
      Object.keys(responses['200']?.headers ?? {}).toSorted()
    const chat = operationAt('post', '/v1/chat/completions')
    expect(headersOf(chat)).toEqual(['Idempotency-Key', 'Cache-Control'])
    expect(answered(chat)).toEqual(['age', 'idempotency-replayed', 'x-gateway-cache'])
    expect(chat.parameters.find(({ name }) => name === 'Idempotency-Key')?.schema).toEqual({
      type: 'string',
      minLength: 1,
      maxLength: 255,
    })
    const cancel = operationAt('post', '/v1/responses/{id}/cancel')
    expect([headersOf(cancel), answered(cancel)]).toEqual([['Idempotency-Key'], ['idempotency-replayed']])
    for (const path of [
      '/v1/messages/count_tokens',
      '/v1/responses/compact',
      '/v1/audio/transcriptions',
      '/v1/images/edits',
    ])
      expect([path, headersOf(operationAt('post', path)), answered(operationAt('post', path))]).toEqual([
        path,
        ['Idempotency-Key'],
        ['idempotency-replayed', 'x-gateway-cache'],
      ])
    for (const path of ['/v1/files', '/v1/batches'])
      expect([path, headersOf(operationAt('post', path)), answered(operationAt('post', path))]).toEqual([
        path,
        ['Idempotency-Key'],
        ['idempotency-replayed'],
      ])
    for (const [method, path] of [
      ['post', '/mcp'],
      ['post', '/mcp/{toolset}'],
      ['post', '/v1/batches/{id}/cancel'],
      ['post', '/v1/messages/batches/{id}/cancel'],
      ['get', '/v1/models'],
      ['get', '/v1/responses/{id}'],
      ['post', '/api/token/'],
    ] as const)
      expect([path, headersOf(operationAt(method, path)), answered(operationAt(method, path))]).toEqual([
        path,
        [],
        [],
      ])
  })

  test('each POST of an API key reads Idempotency-Key if the description has it, and no other does', async () => {
    const posts = ROUTES.filter(isCallEndpoint).filter(
      ({ access, method }) => access === 'api-key' && method === 'POST',
    )
    const form = formBytes([{ name: 'purpose', content: 'batch' }])
    for (const route of posts) {
      const path = filledPath(route, 'm')
      const { parameters } = operationAt('post', describedPath(route))
      const isDescribed = parameters.some(({ name }) => name === 'Idempotency-Key')
      const isForm = route.requestSchema === undefined && route.formSchema !== undefined
      const send = (key: string, length: number): Promise<FullResponse> => {
        const given = isForm ? formCall(path, key, form) : { path, key, headers: {} }
        const headers = { ...given.headers, 'idempotency-key': 'x'.repeat(length) }
        return call(fixture.gateway.url, isForm ? form : {}, { ...given, headers })
      }
      const { text } = await send('ann', 256)
      expect([path, text.includes('idempotency-key: expected')]).toEqual([path, isDescribed])
      // An answer that may be kept needs no quota.
      if (!isDescribed) expect([path, (await send('spent', 1)).status]).toEqual([path, 401])
    }
  })

  test('GET /openapi.json is valid OpenAPI', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(JSON.parse(served.text))
    expect(errors ?? []).toEqual([])
    expect(valid).toBe(true)
    expect(validator.version).toBe('3.1')
  })

  test('GET /openapi.json has schemas that are valid JSON Schema, with references that can be resolved', () => {
    const ajv = new Ajv2020({
      strict: true,
      validateFormats: false,
      strictTypes: false,
      strictRequired: false,
    }).addVocabulary(['x-max-bytes'])
    for (const { operation } of operations()) {
      const { parameters, requestBody, responses } = operation
      const bodies = [requestBody, ...Object.values(responses)].flatMap((body) =>
        Object.values(body?.content ?? {}),
      )
      for (const { schema } of [...parameters, ...bodies]) {
        if (!JSON.stringify(schema).includes('"$ref"')) ajv.compile(schema)
      }
    }
    for (const [, reference = ''] of served.text.matchAll(/"\$ref":"([^"]*)"/g)) {
      expect(reference).toMatch(/^#\/components\/schemas\//)
      expect(document.components.schemas).toHaveProperty([reference.replace('#/components/schemas/', '')])
    }
  })

  test('GET /openapi.json describes exactly the routes that the gateway serves', () => {
    const told = operations().map(({ method, path }) => `${method} ${path}`)
    const routes = ROUTES.map((route) => `${route.method.toLowerCase()} ${describedPath(route)}`)
    expect(told.toSorted()).toEqual(routes.toSorted())
  })

  test('GET /openapi.json describes every operation, its authentication, and its errors', () => {
    const schemes = Object.keys(document.components.securitySchemes)
    const ids = operations().map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, operation } of operations()) {
      expect(operation.summary, path).toMatch(/\S/)
      expect(operation.tags, path).toHaveLength(1)
      expect(operation.security, path).toBeInstanceOf(Array)
      for (const scheme of operation.security.flatMap((all) => Object.keys(all)))
        expect(schemes).toContain(scheme)
      const statuses = Object.keys(operation.responses)
      // Some endpoints only redirect, and one is not implemented.
      expect(
        statuses.some((status) => ['200', '301', '302', '501'].includes(status)),
        path,
      ).toBe(true)
      // The liveness endpoint answers 200 whatever other errors there are.
      if (path === '/healthz') expect(statuses).toEqual(['200'])
      else expect(statuses, path).toEqual(expect.arrayContaining(['500', '503']))
      if (operation.security.length > 0) expect(statuses, path).toContain('403')
      if (operation.requestBody) expect(statuses, path).toEqual(expect.arrayContaining(['400', '413', '415']))
      if (path.startsWith('/api/')) expect(statuses, path).toContain('429')
      for (const [, name] of path.matchAll(/\{(\w+)\}/g))
        expect(operation.parameters, path).toContainEqual(
          expect.objectContaining({ name, in: 'path', required: true }),
        )
    }
  })

  test.each([
    ['get', '/api/user/self', [{ accessToken: [], gatewayUser: [] }, { session: [] }]],
    ['post', '/v1/chat/completions', [{ bearerKey: [] }]],
    ['post', '/v1/messages', [{ xApiKey: [] }, { bearerKey: [] }]],
    ['get', '/metrics', [{}, { metricsToken: [] }]],
    ['get', '/healthz', []],
    ['get', '/openapi.json', []],
  ])('GET /openapi.json describes the authentication of %s %s', (method, path, security) => {
    expect(operationAt(method, path).security).toEqual(security)
  })
})

test('GET /openapi.json describes /readyz: a plain text while not ready, and an envelope before routing starts', () => {
  const { content } = operationAt('get', '/readyz').responses['503'] ?? { content: {} }
  expect(Object.keys(content).toSorted()).toEqual(['application/json', 'text/plain'])
})

describe('the described responses and errors', () => {
  const ajv = new Ajv2020({ strictTypes: false, strictRequired: false })
  const matches = (schema: object, value: unknown): void => {
    const validate = ajv.compile(schema)
    expect(validate(value), JSON.stringify(validate.errors)).toBe(true)
  }
  const errorOf = (area: string): object => document.components.schemas[`error-${area}`] ?? {}

  test.each(['/api/user/self', '/api/log/', '/api/log/stat', '/api/data/'] as const)(
    'the response of GET %s matches its OpenAPI description',
    async (path) => {
      const { body, status } = await manage(fixture.gateway.url, ADA, `GET ${path}`)
      expect(status).toBe(200)
      const schema = operationAt('get', path).responses['200']?.content['application/json']?.schema ?? {}
      expect(schema).toMatchObject({ required: ['success', 'message', 'data'] })
      matches(schema, body)
    },
  )

  test('the OpenAPI description matches its own description', () => {
    const { schema } = operationAt('get', '/openapi.json').responses['200']?.content['application/json'] ?? {}
    matches(schema ?? {}, document)
  })

  test('error responses of each part of the API match their OpenAPI description', async () => {
    matches(errorOf('management'), (await manage(fixture.gateway.url, ADA, 'GET /api/nothing')).body)
    const of = async (path: string): Promise<unknown> =>
      JSON.parse((await call(fixture.gateway.url, {}, { path, key: 'ann' })).text)
    matches(errorOf('relay'), await of('/v1/chat/completions'))
    matches(errorOf('messages'), await of('/v1/messages'))
    matches(errorOf('gemini'), await of('/v1beta/models/m:generateContent'))
    matches(errorOf('gemini-array'), await of('/v1beta/models/m:streamGenerateContent'))
    matches(errorOf('mcp'), await of('/mcp'))
    expect(errorOf('gemini')).toMatchObject({
      properties: { error: { properties: { code: { type: 'integer' }, details: { type: 'array' } } } },
    })
    const eitherOf = (method: string, path: string): unknown =>
      operationAt(method, path).responses['503']?.content['application/json']?.schema
    const refs = (...areas: string[]): object => ({
      anyOf: areas.map((area) => ({ $ref: `#/components/schemas/error-${area}` })),
    })
    const stream = '/v1beta/models/{model}:streamGenerateContent'
    expect(eitherOf('post', stream)).toEqual(refs('gemini', 'gemini-array'))
    expect(eitherOf('get', '/v1/models')).toEqual(refs('relay', 'messages'))
    expect(errorOf('relay')).toMatchObject({
      properties: { error: { required: expect.arrayContaining(['code']) } },
    })
  })
})

/** Parts of bodies that are described only by their names, and the reason. */
const UNDESCRIBED: Readonly<Record<string, string>> = {
  other: 'any JSON, or a text of it',
  '*': 'fields of a channel that other gateways know, which are kept as they are',
  'price.*': 'prices, which the schema of gateway.yaml checks',
  'items.price.*': 'the same',
  'change.prices.*.*': 'the same',
}

/** Members of a guard, which the schema of gateway.yaml checks. */
const GUARD_MEMBERS = Object.fromEntries(
  'do match where mode with models groups users tokens sample timeout on_failure charge most_delay *'
    .split(' ')
    .flatMap((name) => [name, `guard.${name}`])
    .map((name) => [name, 'checked by the schema of gateway.yaml']),
)

/** Members of a server or a toolset, which the schema of gateway.yaml checks. */
const MCP_MEMBERS = Object.fromEntries(
  'url era auth headers token_url client_id client_secret scope timeout list_ttl most_answer price rate_limit approve tools groups users *'
    .split(' ')
    .map((name) => [name, 'checked by the schema of gateway.yaml']),
)

/** Paths of the parts of a schema that accept any value. */
function undescribedIn(schema: Part, at: readonly string[] = []): string[] {
  if ('const' in schema || 'enum' in schema) return []
  const { properties, additionalProperties: more, items, anyOf } = schema
  if (anyOf && !properties) return anyOf.flatMap((part) => undescribedIn(part, at))
  const parts = Object.entries(properties ?? {}).flatMap(([name, part]) => undescribedIn(part, [...at, name]))
  if (typeof more === 'object') parts.push(...undescribedIn(more, [...at, '*']))
  if (items) parts.push(...undescribedIn(items, at))
  const isOpen = schema.type === undefined || (schema.type === 'object' && !properties && !more)
  return isOpen && !properties ? [at.join('.')] : parts
}

test('the OpenAPI description describes every field in the bodies of management requests', () => {
  const bodies = operations().filter(
    ({ operation: { tags, requestBody } }) =>
      tags[0] === 'management' && requestBody?.content['application/json'],
  )
  expect(bodies.length).toBeGreaterThan(15)
  for (const { path, method, operation } of bodies) {
    const parts = undescribedIn(operation.requestBody?.content['application/json']?.schema ?? {})
    const known =
      path.startsWith('/api/channel/') ||
      path.startsWith('/api/models/price') ||
      path === '/api/usage/what-if'
        ? UNDESCRIBED
        : path.startsWith('/api/guards')
          ? GUARD_MEMBERS
          : path.startsWith('/api/mcp/')
            ? MCP_MEMBERS
            : {}
    const unknown = parts.filter((part) => !(part.replace(/^channel\./, '') in known))
    expect(unknown, `${method} ${path}`).toEqual([])
  }
})

describe('the described requests', () => {
  const ajv = new Ajv2020({ strictTypes: false, strictRequired: false })
  const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
  const MESSAGES = { model: 'messages', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }
  const COUNT = { model: 'messages', messages: [] }
  const said = (content: unknown): object => ({ messages: [{ role: 'user', content }] })

  test.each(['/v1/chat/completions', '/v1/messages', '/v1/messages/count_tokens'])(
    'the OpenAPI description of %s gives a type to every field',
    (path) => {
      const { properties = {} } = (operationAt('post', path).requestBody?.content['application/json']
        ?.schema ?? {}) as {
        properties?: object
      }
      for (const [field, schema] of Object.entries(properties)) {
        const { anyOf: [accepted = schema] = [] } = schema
        expect(Object.keys(accepted), field).not.toEqual([])
      }
      expect(Object.keys(properties).length).toBeGreaterThanOrEqual(2)
    },
  )

  test.each<[path: string, body: object, isRight: boolean]>([
    ['/v1/chat/completions', {}, true],
    ['/v1/chat/completions', { unknown_field: 1, temperature: null, seed: 7 }, true],
    ['/v1/chat/completions', { model: undefined }, false],
    ['/v1/chat/completions', { model: null }, false],
    ['/v1/chat/completions', { model: '' }, false],
    ['/v1/chat/completions', { model: 'a\nb' }, false],
    ['/v1/chat/completions', { model: 'm'.repeat(257) }, false],
    ['/v1/chat/completions', { messages: [] }, false],
    ['/v1/chat/completions', { messages: [{}] }, false],
    ['/v1/chat/completions', { messages: [{ role: 1 }] }, false],
    ['/v1/chat/completions', said(5), false],
    ['/v1/chat/completions', said({}), false],
    ['/v1/chat/completions', said(null), true],
    ['/v1/chat/completions', said(['odd']), true],
    ['/v1/chat/completions', { n: 128 }, true],
    ['/v1/chat/completions', { n: 129 }, false],
    ['/v1/chat/completions', { n: 1.5 }, false],
    ['/v1/chat/completions', { temperature: 2 }, true],
    ['/v1/chat/completions', { temperature: 2.1 }, false],
    ['/v1/chat/completions', { temperature: '1' }, false],
    ['/v1/chat/completions', { max_tokens: 0 }, false],
    ['/v1/chat/completions', { stream: 'yes' }, false],
    ['/v1/chat/completions', { stream_options: { include_usage: 1 } }, false],
    ['/v1/chat/completions', { stream_options: { include_usage: null } }, true],
    ['/v1/chat/completions', { stop: ['a', 'b', 'c', 'd'] }, true],
    ['/v1/chat/completions', { stop: ['a', 'b', 'c', 'd', 'e'] }, false],
    ['/v1/chat/completions', { logit_bias: { 1: 100 } }, true],
    ['/v1/chat/completions', { logit_bias: { 1: 101 } }, false],
    ['/v1/chat/completions', { logprobs: true, top_logprobs: 20 }, true],
    ['/v1/chat/completions', { logprobs: true, top_logprobs: 21 }, false],
    ['/v1/chat/completions', { tools: [{ function: {} }] }, true],
    ['/v1/chat/completions', { tools: [{}] }, false],
    ['/v1/chat/completions', { tools: [{ type: 1 }] }, false],
    ['/v1/chat/completions', { tool_choice: { type: 'x' } }, true],
    ['/v1/chat/completions', { tool_choice: {} }, false],
    ['/v1/chat/completions', { response_format: 'json' }, false],
    ['/v1/chat/completions', { function_call: { name: 'f' } }, true],
    ['/v1/chat/completions', { function_call: {} }, false],
    ['/v1/chat/completions', { metadata: { a: 'b' } }, true],
    ['/v1/chat/completions', { metadata: { a: 1 } }, false],
    ['/v1/chat/completions', { web_search_options: { search_context_size: 3 } }, false],
    ['/v1/completions', { top_p: 1.1 }, false],
    ['/v1/messages', {}, true],
    ['/v1/messages', { max_tokens: undefined }, false],
    ['/v1/messages', { max_tokens: 0 }, true],
    ['/v1/messages', { max_tokens: -1 }, false],
    ['/v1/messages', { temperature: 1.1 }, false],
    ['/v1/messages', { messages: [{ role: 'user' }] }, false],
    ['/v1/messages', said(1), false],
    ['/v1/messages', said([{ type: 'text', text: 'hi' }]), true],
    ['/v1/messages', said([{ type: 'text' }]), false],
    ['/v1/messages', said([{ text: 'hi' }]), false],
    ['/v1/messages', said([{ type: 'of another kind' }]), true],
    ['/v1/messages', said([{ type: 'text', text: 'hi', cache_control: 1 }]), false],
    ['/v1/messages', said([{ type: 'image', source: { type: 'url', url: 'https://example.org' } }]), true],
    ['/v1/messages', said([{ type: 'image', source: { type: 'url' } }]), false],
    ['/v1/messages', said([{ type: 'tool_use', id: 'a', name: 'b', input: [] }]), false],
    ['/v1/messages', said([{ type: 'tool_result', tool_use_id: 'a', content: null }]), true],
    ['/v1/messages', said([{ type: 'tool_result', content: 'x' }]), false],
    ['/v1/messages', { system: [{ type: 'text', text: 'be kind' }] }, true],
    ['/v1/messages', { system: [{ type: 'text' }] }, false],
    ['/v1/messages', { system: {} }, false],
    ['/v1/messages', { tools: [{ name: 'f', input_schema: {} }] }, true],
    ['/v1/messages', { tools: [{ name: 'f' }] }, false],
    ['/v1/messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, true],
    ['/v1/messages', { tools: [{ type: 'custom', input_schema: {} }] }, false],
    ['/v1/messages', { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }, true],
    ['/v1/messages', { tool_choice: { type: 'tool' } }, false],
    ['/v1/messages', { thinking: { type: 'disabled' } }, true],
    ['/v1/messages', { model: 'm', thinking: { type: 'enabled' } }, true],
    ['/v1/messages', { thinking: { type: 'enabled', budget_tokens: 0 } }, false],
    ['/v1/messages', { stop_sequences: ['a', 1] }, false],
    ['/v1/messages/count_tokens', {}, true],
    ['/v1/messages/count_tokens', { model: '' }, false],
    ['/v1/messages/count_tokens', { messages: 'hi' }, false],
  ])(
    'the OpenAPI description accepts a body exactly if the gateway does: %s %j',
    async (path, fields, isRight) => {
      const base = { '/v1/messages': MESSAGES, '/v1/messages/count_tokens': COUNT }[path] ?? CHAT
      const body = JSON.parse(JSON.stringify({ ...base, ...fields }))
      const schema = operationAt('post', path).requestBody?.content['application/json']?.schema ?? {}
      expect(ajv.validate(schema, body), ajv.errorsText()).toBe(isRight)
      const { status, text } = await call(fixture.gateway.url, body, { path, key: 'ann' })
      if (isRight) expect(status, text).not.toBe(400)
      else expect(status, text).toBe(400)
    },
  )

  test.each([
    ['/api/log/', 'start_timestamp', '1760000000', true],
    ['/api/log/', 'start_timestamp', '-1', false],
    ['/api/log/', 'start_timestamp', '1.5', false],
    ['/api/log/', 'model_name', 'm'.repeat(2000), true],
    ['/api/log/', 'model_name', 'm'.repeat(2001), false],
  ] as const)(
    'the OpenAPI description accepts a query parameter exactly if the gateway does: GET %s, %s',
    async (path, name, value, isRight) => {
      const parameter = operationAt('get', path).parameters.find((one) => one.name === name)
      expect(parameter).toMatchObject({ in: 'query', required: false })
      // Converts types as clients do, which convert the text of a query by its type.
      const read = new Ajv2020({ strictTypes: false, coerceTypes: true, keywords: ['x-max-bytes'] })
      const schema = { type: 'object', properties: { value: parameter?.schema } }
      expect(read.validate(schema, { value })).toBe(isRight)
      const { status } = await manage(fixture.gateway.url, ADA, `GET ${path}?${name}=${value}`)
      expect(status).toBe(isRight ? 200 : 400)
    },
  )
})

describe('the described parameters of calls', () => {
  test.each([
    ['/v1/files', 'limit', '10000', true],
    ['/v1/files', 'limit', '10001', false],
    ['/v1/files', 'order', 'asc', true],
    ['/v1/files', 'order', 'up', false],
    ['/v1/batches', 'limit', '100', true],
    ['/v1/batches', 'limit', '101', false],
    ['/v1/batches', 'order', 'desc', true],
    ['/v1/batches', 'order', 'down', false],
    ['/v1/messages/batches', 'limit', '1000', true],
    ['/v1/messages/batches', 'limit', '1001', false],
  ] as const)(
    'the OpenAPI description accepts a query parameter of a list exactly if the gateway does: GET %s?%s=%s',
    async (path, name, value, isRight) => {
      const parameter = operationAt('get', path).parameters.find((one) => one.name === name)
      const read = new Ajv2020({ coerceTypes: true })
      const schema = { type: 'object', properties: { value: parameter?.schema ?? false } }
      expect(read.validate(schema, { value })).toBe(isRight)
      const to = { method: 'GET', path: `${path}?${name}=${value}`, key: 'ann' } as const
      expect((await call(fixture.gateway.url, undefined, to)).status).toBe(isRight ? 200 : 400)
    },
  )

  test.each([
    ['/v1/files', ['purpose', 'after', 'order', 'limit']],
    ['/v1/batches', ['after', 'order', 'limit']],
    ['/v1/messages/batches', ['before_id', 'after_id', 'limit']],
    ['/v1/responses/{id}', ['include', 'include[]', 'stream', 'starting_after']],
    ['/v1/responses/{id}/input_items', ['include', 'include[]', 'after', 'order', 'limit']],
  ])('the OpenAPI description has the query parameters of GET %s', (path, names) => {
    const inQuery = operationAt('get', path).parameters.filter((one) => one.in === 'query')
    expect(inQuery.map(({ name }) => name)).toEqual(names)
    expect(inQuery.every(({ required }) => !required)).toBe(true)
  })
})

test('the OpenAPI description has the types of parameters and defaults that clients send, not those that the program converts to', () => {
  const endpoint = defineEndpoint({
    method: 'PUT',
    path: '/api/thing/:id/part',
    area: 'management',
    access: 'account',
    summary: 'A part',
    params: z.object({ id: z.string().regex(/^\d+$/).transform(Number) }),
    query: z.object({ only: z.string(), more: z.string().optional() }),
    body: z.object({
      name: z.string(),
      size: z.int().default(5),
      text: z.string().transform((text) => text.length),
    }),
    handle: () => Promise.resolve(undefined),
  })
  const [told] = operations(openApiDocument([endpoint]) as Document)
  if (!told) throw new Error('nothing is told')
  const { path, operation } = told
  expect(path).toBe('/api/thing/{id}/part')
  expect(operation.parameters).toEqual([
    { name: 'id', in: 'path', required: true, schema: { type: 'string', pattern: '^\\d+$' } },
    { name: 'only', in: 'query', required: true, schema: { type: 'string' } },
    { name: 'more', in: 'query', required: false, schema: { type: 'string' } },
  ])
  expect(operation.requestBody?.content['application/json']?.schema).toMatchObject({
    required: ['name', 'text'],
    properties: { size: { type: 'integer', default: 5 }, text: { type: 'string' } },
  })
  expect(operation.responses['200']?.content['application/json']?.schema).toEqual({
    type: 'object',
    required: ['success', 'message'],
    properties: { success: { const: true }, message: { type: 'string' } },
  })
  expect(Object.keys(operation.responses)).toEqual([
    '200',
    '400',
    '401',
    '403',
    '404',
    '408',
    '413',
    '415',
    '429',
    '500',
    '503',
  ])
})

test.each([['/api/token/'], ['/api/user/']])(
  'the OpenAPI description of PUT %s has every field that the one of POST has',
  (path) => {
    const fieldsOf = (method: string): string[] => {
      const schema = operationAt(method, path).requestBody?.content['application/json']?.schema
      const { anyOf = [schema] } = schema as { readonly anyOf?: readonly unknown[] }
      return anyOf.flatMap((one) => Object.keys((one as { readonly properties: object }).properties))
    }
    expect(fieldsOf('put')).toEqual(expect.arrayContaining(fieldsOf('post')))
  },
)
