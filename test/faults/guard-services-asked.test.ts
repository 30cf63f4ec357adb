import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { casesByTier } from '../runner/tier.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { askGuarded, FORMS, PROTOCOLS, REFUSED } from '../fixtures/guarded-dialects.ts'

const CODE = 'code-4711-x'
const SAID = `It is ${CODE}, yes: "${CODE}" 👍`
const ARGS = { to: `a "${CODE}"\n`, x: 1 }

const KINDS = ['webhook', 'presidio', 'bedrock', 'lakera'] as const
const AWS_KEY = 'AKIDEXAMPLE0000:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'

function matchOf(kind: (typeof KINDS)[number], url: string): Record<string, unknown> {
  const matches = {
    webhook: { url, headers: { 'x-secret': 'the-secret' } },
    presidio: { url },
    bedrock: { base_url: url, region: 'us-east-1', guardrail: 'gr-1', version: 2, keys: [AWS_KEY] },
    lakera: { base_url: url, key: 'lakera-key' },
  }
  return { [kind]: matches[kind] }
}

const PLACES = {
  input: ['input', 'tool_results', 'tool_arguments'],
  output: ['output', 'tool_arguments'],
} as const
const ACTIONS = ['block', 'redact', 'replace', 'flag'] as const

let services: GuardServices
let fixture: Fixture
beforeAll(async () => {
  services = await startGuardServices()
  const names = KINDS.flatMap((kind) =>
    Object.keys(PLACES).flatMap((place) => ACTIONS.map((action) => ({ kind, place, action }))),
  ).filter(({ kind, action }) => kind !== 'lakera' || action === 'block' || action === 'flag')
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS]),
    channels: PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    guards: names.map(({ kind, place, action }) => ({
      name: `${kind}-${place}-${action}`,
      do: action,
      where: PLACES[place as keyof typeof PLACES],
      match: matchOf(kind, services.url),
      timeout: '60s',
      tokens: [`token-${kind}${place}${action}`],
    })),
    users: [
      ROOT,
      user(2, 'ann', [
        ...names.map(({ kind, place, action }) => token(`${kind}${place}${action}`)),
        token('plain'),
      ]),
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})
beforeEach(() => {
  services.asked.splice(0)
  services.trouble = undefined
  services.action = 'GUARDRAIL_INTERVENED'
})

const ROADS = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.flatMap((to) => FORMS.map((form) => [client, to, form] as const)),
)
/** What each service writes in place of a match. */
const WRITTEN = { webhook: '<code>', presidio: '[REDACTED]', bedrock: '{CODE}' } as const

describe.each(casesByTier(11, ROADS))('a %s client of a %s channel, %s', (client, to, form) => {
  const said = (key: string, text = SAID, input?: string) =>
    askGuarded(fixture, client, to, form, key, { text, ...(input !== undefined && { input }) })

  // The road makes no difference to a service.
  const kinds = client === to ? KINDS : (['webhook'] as const)
  const redacting = client === to ? (['webhook', 'presidio', 'bedrock'] as const) : (['webhook'] as const)

  test.each(redacting)("the client gets an answer as the guard's service %s redacted it", async (kind) => {
    const { text, raw, args } = await said(`${kind}outputredact`, SAID, JSON.stringify(ARGS))
    expect(text).toBe(SAID.replaceAll(CODE, WRITTEN[kind]))
    expect(args).toEqual({ to: `a "${WRITTEN[kind]}"\n`, x: 1 })
    expect(raw).not.toContain(CODE)
  })

  test.each(kinds)(
    "the client gets a refusal in place of an answer that the guard's service %s blocks",
    async (kind) => {
      const given = await said(`${kind}outputblock`)
      expect([given.status, given.finish, given.text]).toEqual([200, REFUSED[client], ''])
      expect(given.raw).not.toContain(CODE)
      expect(given.raw).not.toContain('yes')
    },
  )

  test.each(kinds)(
    "the client gets an answer unchanged if the guard's service %s lets it pass",
    async (kind) => {
      const plain = await said('plain', 'It is fine.')
      const given = await said(`${kind}outputblock`, 'It is fine.')
      expect(withoutIds(given.raw)).toBe(withoutIds(plain.raw))
      expect(services.asked).toHaveLength(1)
    },
  )

  test.each(kinds)(
    'the client gets an answer unchanged if the guard of the service %s only flags it',
    async (kind) => {
      expect((await said(`${kind}outputflag`)).text).toBe(SAID)
    },
  )
})

/** Ids and times differ from answer to answer. */
function withoutIds(raw: string): string {
  return raw
    .replaceAll(/[0-9a-f]{32}|[0-9a-f-]{36}/g, '')
    .replaceAll(/"(?:id|created|created_at|completed_at|responseId)":("[^"]*"|\d+)/g, '')
}

describe.each(KINDS)('%s', (kind) => {
  test.each(PROTOCOLS)(
    "a request of a %s client that a guard's service blocks is not sent upstream",
    async (client) => {
      const given = await askGuarded(
        fixture,
        client,
        'chat',
        'whole',
        `${kind}inputblock`,
        { text: 'ok' },
        SAID,
      )
      expect(given.status).toBe(400)
      expect(given.raw).toContain(`${kind}-input-block`)
      expect(given.raw).not.toContain(CODE)
      expect(given.verdicts).toBe(
        `${kind}-input-block=blocked;count=${kind === 'presidio' || kind === 'bedrock' ? 2 : 1}`,
      )
      expect(fixture.upstream.received('chat')).toEqual([])
    },
  )

  test("the request to a guard's service has no header and no data that identifies the caller", async () => {
    await askGuarded(fixture, 'chat', 'chat', 'whole', `${kind}inputblock`, { text: 'ok' }, 'fine')
    expect(services.asked).toHaveLength(1)
    const [{ headers, text, path } = { headers: {}, text: '', path: '' }] = services.asked
    expect(JSON.stringify([headers, text, path])).not.toMatch(/sk-|ann|token/)
    expect(Object.keys(headers).toSorted()).toEqual(
      [...COMMON_HEADERS, ...(OWN_HEADERS[kind] ?? [])].toSorted(),
    )
  })
})

const COMMON_HEADERS = [
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
  'user-agent',
]
const OWN_HEADERS: Readonly<Record<string, readonly string[]>> = {
  webhook: ['x-secret'],
  bedrock: ['authorization', 'x-amz-date'],
  lakera: ['authorization'],
}

describe.each(['webhook', 'presidio', 'bedrock'] as const)('%s', (kind) => {
  test.each(PROTOCOLS)(
    "a request of a %s client is sent upstream as a guard's service redacted it",
    async (client) => {
      const given = await askGuarded(
        fixture,
        client,
        'chat',
        'whole',
        `${kind}inputredact`,
        { text: 'ok' },
        SAID,
      )
      expect([given.status, given.text]).toEqual([200, 'ok'])
      expect(fixture.upstream.received('chat')[0]?.text).toContain(
        JSON.stringify(SAID.replaceAll(CODE, WRITTEN[kind])),
      )
      expect(given.verdicts).toMatch(new RegExp(`^${kind}-input-redact=redacted;count=[12]$`))
    },
  )

  test.each(FORMS)(
    "a value that a guard's service replaced in the request is restored in the answer, %s",
    async (form) => {
      const key = `${kind}inputreplace`
      await askGuarded(fixture, 'chat', 'chat', form, key, { text: 'ok' }, `mail ${CODE} now`)
      const sent = fixture.upstream.received('chat')[0]?.text ?? ''
      const mark = /\[\[[A-Z0-9_]+_[0-9a-f]{8}\]\]/.exec(sent)?.[0] ?? ''
      expect(sent).not.toContain(CODE)
      expect(sent).toContain(`mail ${mark} now`)
      const given = await askGuarded(
        fixture,
        'chat',
        'chat',
        form,
        key,
        { text: `To ${mark}.` },
        `mail ${CODE} now`,
      )
      expect(given.text).toBe(`To ${CODE}.`)
    },
  )

  test("a guard's service redacts results and arguments of tools in a request, and the arguments stay JSON", async () => {
    fixture.upstream.script('chat', { kind: 'whole' })
    const messages = [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'send', arguments: JSON.stringify(ARGS) } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: `done ${CODE}` },
    ]
    const answer = await fixture.chat(`${kind}inputredact`, { model: 'chat', messages })
    expect(answer.status).toBe(200)
    const sent = JSON.parse(fixture.upstream.received('chat')[0]?.text ?? '{}') as { messages: any[] } // eslint-disable-line
    expect(JSON.parse(sent.messages[1].tool_calls[0].function.arguments)).toEqual({
      to: `a "${WRITTEN[kind]}"\n`,
      x: 1,
    })
    expect(sent.messages[2].content).toBe(`done ${WRITTEN[kind]}`)
  })
})

describe('a webhook gets', () => {
  test("a guard's webhook gets texts, tool calls, image URLs, the call id and whether it is an answer, and nothing else", async () => {
    fixture.upstream.script('chat', { kind: 'whole', content: 'fine' })
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'send', arguments: '{"to":"bob"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
    ]
    const answer = await fixture.chat('webhookinputblock', { model: 'chat', messages })
    expect(answer.status).toBe(200)
    expect(services.asked.map(({ path, body }) => [path, body])).toEqual([
      [
        '/beta/litellm_basic_guardrail_api',
        {
          texts: ['look', 'https://example.com/a.png', 'to', 'bob', 'done'],
          images: ['https://example.com/a.png'],
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'send', arguments: '{"to":"bob"}' } }],
          input_type: 'request',
          litellm_call_id: answer.headers['x-request-id'],
        },
      ],
    ])
    expect(services.asked[0]?.headers['x-secret']).toBe('the-secret')
  })

  test("a guard's webhook gets the calls of tools of MCP servers in a responses request", async () => {
    fixture.upstream.script('responses', { kind: 'whole', body: JSON.stringify({ id: 'r', output: [] }) })
    const called = { name: 'send', arguments: '{"to":"bob"}', server_label: 'mail' }
    const input = [
      { type: 'message', role: 'user', content: 'look' },
      { type: 'mcp_call', id: 'm1', ...called },
      { type: 'mcp_approval_request', id: 'm2', ...called },
    ]
    await fixture.chat('webhookinputblock', { model: 'responses', input }, { path: '/v1/responses' })
    const { name, arguments: text } = called
    expect(services.asked[0]?.body.tool_calls).toEqual(
      ['m1', 'm2'].map((id) => ({ id, type: 'function', function: { name, arguments: text } })),
    )
  })

  test.each(PROTOCOLS.flatMap((client) => FORMS.map((form) => [client, form] as const)))(
    "a guard's webhook gets the tool calls of an answer to a %s client, %s",
    async (client, form) => {
      await askGuarded(fixture, client, 'chat', form, 'webhookoutputblock', {
        text: 'ok',
        input: '{"to":"bob"}',
      })
      expect(services.asked.map(({ body }) => [body.input_type, body.texts.toSorted()])).toEqual([
        ['response', ['bob', 'ok', 'to']],
      ])
      const [call] = services.asked[0]?.body.tool_calls ?? []
      expect([call.function.name, JSON.parse(call.function.arguments)]).toEqual(['send', { to: 'bob' }])
      expect(services.asked[0]?.body.tool_calls).toHaveLength(1)
    },
  )
})

describe.each(['block', 'redact', 'replace'] as const)('a webhook that answers BLOCKED to %s', (action) => {
  test("a guard's webhook that answers BLOCKED blocks the request, whatever the action of the guard", async () => {
    services.action = 'BLOCKED'
    const given = await askGuarded(
      fixture,
      'chat',
      'chat',
      'whole',
      `webhookinput${action}`,
      { text: 'ok' },
      SAID,
    )
    expect([given.status, fixture.upstream.received('chat')]).toEqual([400, []])
    expect(given.verdicts).toBe(`webhook-input-${action}=blocked;count=1`)
  })

  test.each(FORMS)(
    "a guard's webhook that answers BLOCKED blocks the answer, whatever the action of the guard: %s",
    async (form) => {
      services.action = 'BLOCKED'
      const given = await askGuarded(fixture, 'chat', 'chat', form, `webhookoutput${action}`, { text: SAID })
      expect([given.status, given.finish, given.text]).toEqual([200, 'content_filter', ''])
    },
  )
})
