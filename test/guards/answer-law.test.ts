import { Agent } from 'node:http'
import type { ClientProtocol, ConversionProtocol } from '@sluice/wire/protocols'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ANSWER_FORMS, frameOf } from '../fixtures/answer-forms.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { eventsOf, type Form, type Loose, PROTOCOLS, requestOf } from '../fixtures/guarded-dialects.ts'
import { ACCOUNT, REGION } from '../fixtures/providers/bedrock.ts'
import { randomFrom } from '../fixtures/random.ts'
import { changedPlaces } from '../generators/changed-places.ts'
import { choppedAtRandom } from '../generators/chunks.ts'
import { byTier } from '../runner/tier.ts'

/** What the guard of this file redacts. It has spaces, so that it never looks like a word of a protocol. */
const TEXT = 'The number of the plan is code 4711 x, as agreed on Monday.'
const CODE = /code 4711 x/

/** Protocols of the channels; converse is spoken by Bedrock, in its binary events. */
const CHANNELS = [...PROTOCOLS, 'converse'] as const
/** Clients: their protocols, and a Gemini client that reads a stream as one array. */
const CLIENTS = [...PROTOCOLS, 'gemini array'] as const
type Client = (typeof CLIENTS)[number]
const BEDROCK = { provider: 'bedrock', region: REGION, keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`] }

// A connection for each of the calls would take a fifth of their time.
const agent = new Agent({ keepAlive: true })

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...CHANNELS]),
    channels: CHANNELS.map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name, ...(name === 'converse' && BEDROCK) }),
    ),
    guards: [
      { name: 'codes', do: 'redact', match: { regex: CODE.source }, tokens: ['token-ann'] },
      { name: 'stop', do: 'block', match: { regex: CODE.source }, tokens: ['token-ben'] },
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('ben')])],
  }))
})
afterAll(async () => {
  agent.destroy()
  await fixture?.close()
})

/**
 * What guards do not check, as docs/guards.md says: what repeats the request, and errors.
 */
const UNCHECKED: Readonly<Record<ClientProtocol, RegExp>> = {
  chat: /^\.error\b/,
  messages: /^\.error\b/,
  responses:
    /^(?:\.response)?\.(?:error|incomplete_details|input|instructions|metadata|prompt|prompt_cache_key|reasoning|safety_identifier|text|tool_choice|tools|user)\b/,
  gemini: /^\.error\b/,
}

/** Where a channel's answer has reasoning that its provider has signed: it is checked, and cannot be changed. */
const SIGNED: Partial<Record<ConversionProtocol, RegExp>> = {
  messages: /\.thinking$|\.thinking in pieces$/,
  converse: /\.(?:reasoningContent|reasoningText)\.text(?: in pieces)?$/,
}

type Change = (given: string) => unknown

const SPELLINGS: Readonly<Record<string, Change>> = {
  'as it stands': () => TEXT,
  'behind what stood there': (given) => `${given} ${TEXT}`,
  'in JSON': () => JSON.stringify({ note: `first\n${TEXT}` }),
  'in JSON in JSON': () => JSON.stringify({ note: JSON.stringify({ note: `first\n${TEXT}` }) }),
  'in escapes': () =>
    TEXT.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
}

/** All strings and names of a value with their paths, without the numbers of elements. */
function* strings(value: unknown, path = ''): Generator<[path: string, text: string]> {
  if (typeof value === 'string') yield [path, value]
  else if (Array.isArray(value)) for (const one of value) yield* strings(one, `${path}[]`)
  else if (typeof value === 'object' && value !== null)
    for (const [name, one] of Object.entries(value)) {
      yield [`${path}.{}`, name]
      yield* strings(one, `${path}.${name}`)
    }
}

function resolved(text: string): string {
  let result = text
  for (let level = 0; level < 3; level += 1)
    result = result.replaceAll(
      /\\(?:u[0-9a-f]{4}|["\\/bfnrt])/g,
      (escape) => JSON.parse(`"${escape}"`) as string,
    )
  return result
}

/** The places of an answer where its client could read the text: in one string, or in those of several events. */
function readable(client: ClientProtocol, given: readonly Loose[]): string[] {
  const texts = new Map<string, string>()
  for (const event of given) {
    if (event['error'] !== undefined && event['error'] !== null) continue
    for (const [path, text] of strings(event)) {
      // What pieces continue has one path.
      if (CODE.test(resolved(text)) && !UNCHECKED[client].test(path)) return [path]
      texts.set(path, (texts.get(path) ?? '') + text)
    }
  }
  return [...texts].flatMap(([path, text]) =>
    CODE.test(resolved(text)) && !UNCHECKED[client].test(path) ? [`${path} in pieces`] : [],
  )
}

const protocolOf = (client: Client): ClientProtocol => (client === 'gemini array' ? 'gemini' : client)

async function ask(
  client: Client,
  to: ConversionProtocol,
  form: Form,
  behaviour: Behaviour,
  key = 'ann',
): Promise<Loose[] | undefined> {
  fixture.upstream.script(to, behaviour)
  const [path, body] = requestOf(protocolOf(client), to, form)
  const answer = await call(fixture.gateway.url, JSON.stringify(body), {
    path: client === 'gemini array' ? path.replace('?alt=sse', '') : path,
    key,
    agent,
    headers: { 'x-goog-api-key': `sk-${key}` },
  })
  if (answer.status !== 200) return undefined
  if (form === 'streamed' && client !== 'gemini array') return eventsOf(answer.text)
  return [JSON.parse(answer.text)].flat() as Loose[]
}

const random = randomFrom(170)

/** The frames of a stream, cut anywhere. */
function streamOf(protocol: ConversionProtocol, events: readonly object[]): Behaviour {
  const bytes = Buffer.concat(events.map((event) => frameOf(protocol, event)))
  return {
    kind: 'stream',
    chunks: choppedAtRandom(bytes, 2000, random),
    ending: protocol === 'chat' ? 'done' : 'no done',
    ...(protocol === 'converse' && { headers: { 'content-type': 'application/vnd.amazon.eventstream' } }),
  }
}

/** Places of events that hold pieces of longer texts, for their clients. */
const PIECES =
  /\.delta(?:$|\.(?:content|refusal|reasoning|reasoning_content|text|thinking|partial_json|x_note)\b|\.tool_calls\[\d\]\.function\.arguments|\.toolUse\.input|\.toolResult\[\d\]\.text)|\.parts\[\d\]\.text/

/** The streams that differ from the given one in one event; of a delta also those that divide what is added. */
function* streams(events: readonly object[], change: Change): Generator<{ where: string; events: object[] }> {
  for (const [at, event] of events.entries()) {
    for (const { where, body } of changedPlaces(event, change))
      yield { where: `${at}${where}`, events: events.with(at, body as object) }
    const text = String(change(''))
    const thirds = [text.slice(0, 31), text.slice(31, 35), text.slice(35)]
    const each = thirds.map((piece) => [...changedPlaces(event, () => piece)])
    for (const [index, { where }] of (each[0] ?? []).entries()) {
      // What follows the end of an answer continues nothing, and neither does the event of messages that states it.
      const isEnd = at === events.length - 1 || (event as Loose)['type'] === 'message_delta'
      if (!PIECES.test(where) || isEnd) continue
      const pieces = each.map((one) => one[index]?.body as object)
      yield {
        where: `${at}${where} in pieces`,
        events: [...events.slice(0, at), ...pieces, ...events.slice(at + 1)],
      }
    }
  }
}

const ROADS = CLIENTS.flatMap((client, at) => CHANNELS.map((to) => [client, to, at] as const))
/** By day, one in this many places is tried in each spelling. */
const DAY_SHARE = byTier(211, 1)

const SPELLINGS_IN_ORDER = Object.entries(SPELLINGS).map(([how, change], at) => [how, change, at] as const)

// A whole answer has one form for both clients of Gemini.
describe.each(ROADS.filter(([client]) => client !== 'gemini array'))(
  'a whole answer to a %s client from a %s channel',
  (client, to, road) => {
    const form = ANSWER_FORMS[to]

    test('has no text that guards have not checked, wherever and however it stands', async () => {
      const found: string[] = []
      let read = 0
      // By day, the plain spelling is tried at each place for the client of the channel's protocol, and for one other.
      const isTried = (spelling: number, place: number): boolean =>
        spelling === 0
          ? client === to || place % byTier(PROTOCOLS.length, 1) === byTier(road, 0)
          : (place + spelling + 5 * road) % DAY_SHARE === 0
      for (const [how, change, spelling] of SPELLINGS_IN_ORDER)
        for (const [place, { where, body }] of [...changedPlaces(form.whole, change)].entries()) {
          if (!isTried(spelling, place) || SIGNED[to]?.test(where)) continue
          const given = await ask(client, to, 'whole', { kind: 'whole', body: JSON.stringify(body) })
          read += given ? 1 : 0
          const paths = readable(protocolOf(client), given ?? [])
          if (paths.length > 0) found.push(`${how}: ${where} -> ${paths.join()}`)
        }
      expect(found).toEqual([])
      expect(read).toBeGreaterThan(0)
    })

    test('has nothing of a text for which a guard has blocked it', async () => {
      const found: string[] = []
      for (const [number, { where, body }] of [...changedPlaces(form.whole, () => TEXT)].entries()) {
        if ((number + road) % byTier(41, 1) !== 0 || SIGNED[to]?.test(where)) continue
        const given = await ask(client, to, 'whole', { kind: 'whole', body: JSON.stringify(body) }, 'ben')
        const paths = readable(protocolOf(client), given ?? [])
        if (paths.length > 0) found.push(`${where} -> ${paths.join()}`)
      }
      expect(found).toEqual([])
    })
  },
)

describe.each(ROADS)('an answer to a %s client from a %s channel', (client, to, road) => {
  const form = ANSWER_FORMS[to]
  const isArray = client === 'gemini array'

  test('is sent where it has nothing that a guard looks for', async () => {
    const body = JSON.stringify(form.whole)
    if (!isArray) expect(await ask(client, to, 'whole', { kind: 'whole', body })).toHaveLength(1)
    expect(await ask(client, to, 'streamed', streamOf(to, form.events))).not.toHaveLength(0)
  })

  test('has no text that guards have not checked, wherever and however it stands in a stream', async () => {
    const found: string[] = []
    let read = 0
    for (const [how, change, spelling] of SPELLINGS_IN_ORDER)
      for (const [number, { where, events }] of [...streams(form.events, change)].entries()) {
        if ((number + 13 * spelling + 31 * road) % DAY_SHARE !== 0 || SIGNED[to]?.test(where)) continue
        const given = await ask(client, to, 'streamed', streamOf(to, events))
        read += given ? 1 : 0
        const paths = readable(protocolOf(client), given ?? [])
        if (paths.length > 0) found.push(`${how}: ${where} -> ${paths.join()}`)
      }
    expect(found).toEqual([])
    expect(read).toBeGreaterThan(0)
  })
})
