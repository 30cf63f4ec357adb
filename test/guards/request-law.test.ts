import { Agent, createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall } from '../fixtures/form.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { CONVERSING, PICTURE, REQUEST_FORMS, THOUGHTFUL } from '../fixtures/request-forms.ts'
import { cohereAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { type ChangedDocument, changedPlaces } from '../generators/changed-places.ts'
import { byTier, pairsByDay } from '../runner/tier.ts'

/**
 * What the guard of this file redacts. It has spaces, so that it never looks like a word of a protocol, and is long
 * enough that its base64 does not either.
 */
const textOf = (number: number): string =>
  `The number of the plan is code 4711 x, as agreed on Monday, in request number ${number}.`
const TEXT = textOf(0)
const CODE = /code 4711 x/

const CHANNELS = [...CONVERSING, 'rerank'] as const
const ANSWERS: Readonly<Record<string, Behaviour>> = {
  chat: { kind: 'whole' },
  [THOUGHTFUL]: { kind: 'whole' },
  messages: wholeMessage([{ text: 'hi' }]),
  responses: wholeResponse({ text: 'hi' }),
  gemini: wholeGemini(),
  rerank: cohereAnswer(scored(2)),
}

/** Files at addresses, by path: their bytes and their media type. */
const FILES: Readonly<Record<string, readonly [type: string, bytes: Buffer]>> = {
  '/a.png': ['image/png', Buffer.from(PICTURE, 'base64')],
  '/a.pdf': ['application/pdf', Buffer.from('%PDF-1.4\n%\xe2\xe3\n', 'latin1')],
  '/a.txt': ['text/plain', Buffer.from('hello')],
  '/plain': ['text/plain; charset=utf-8', Buffer.from(TEXT)],
  '/wide': ['text/plain; charset=utf-16', Buffer.from(`\ufeff${TEXT}`, 'utf16le')],
  '/pdf': ['application/pdf', Buffer.from(TEXT)],
  '/png': ['image/png', Buffer.from(TEXT)],
  '/unknown': ['application/octet-stream', Buffer.from(TEXT)],
}

// A connection for each of the calls would take a fifth of their time.
const agent = new Agent({ keepAlive: true })

let fixture: Fixture
let files: Server
let address: string
beforeAll(async () => {
  files = createServer(({ url = '' }, reply) => {
    const file = FILES[url]
    if (file) reply.writeHead(200, { 'content-type': file[0] }).end(file[1])
    else reply.writeHead(302, { location: url.replace('/moved', '') }).end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => files.once('listening', resolve))
  address = `http://127.0.0.1:${(files.address() as AddressInfo).port}`
  fixture = await startFixture((upstream) => ({
    options: { media: { allow_private_networks: true } },
    models: priced([...CHANNELS]),
    channels: CHANNELS.map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name === THOUGHTFUL ? 'chat' : name }),
    ),
    guards: [{ name: 'codes', do: 'redact', match: { regex: CODE.source } }],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(async () => {
  agent.destroy()
  await fixture?.close()
  files?.close()
})

/** All texts that a model or a provider may read in a request: strings and names, decoded as often as they can be. */
function readable(value: unknown): string[] {
  if (typeof value === 'string') return [value, ...decoded(value).flatMap(readable)]
  if (Array.isArray(value)) return value.flatMap(readable)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, one]) => [...readable(name), ...readable(one)])
}

/** What a string may stand for: JSON, a data URL, base64 of a text. */
function decoded(text: string): unknown[] {
  const found: unknown[] = []
  if (/^\s*[[{"]/.test(text)) {
    try {
      found.push(JSON.parse(text))
    } catch {
      // It only looks like JSON.
    }
  }
  const url = /^data:([^,]*),([^]*)$/i.exec(text)
  if (url?.[1]?.includes('base64'))
    found.push(...textsIn(Buffer.from(decodeURIComponent(url[2] ?? ''), 'base64')))
  else if (url) found.push(decodeURIComponent(url[2] ?? ''))
  else if (text.length > 64) found.push(...textsIn(Buffer.from(text.replace(/^sluice-1\./, ''), 'base64')))
  for (const [word] of text.matchAll(/(?<![\w+/-])[\w+/-]{24,}={0,2}/g))
    if (word !== text) found.push(...textsIn(Buffer.from(word, 'base64')))
  for (const [, data = ''] of text.matchAll(/.data:[\w/]+,([\w%.~-]+)/g)) found.push(decodeURIComponent(data))
  return found
}

function textsIn(bytes: Buffer): string[] {
  const even = Buffer.from(bytes.subarray(0, bytes.length & ~1))
  return [bytes.toString(), even.toString('utf16le'), even.swap16().toString('utf16le')]
}

/** Calls that are made at the same time. */
const AT_ONCE = 8
const NUMBERED = /request number (\d+)\./

/**
 * Sends requests, each with its number in its texts. Returns where those differ in which the upstream could read the
 * text, and how many it received.
 */
async function unchecked(
  path: string,
  lane: string,
  tried: readonly (ChangedDocument | undefined)[],
): Promise<{ readonly where: readonly string[]; readonly received: number; readonly refusal: string }> {
  // What is sent does not depend on the answer; an error of the client's leaves the channel as it is.
  fixture.upstream.script(lane, ANSWERS[lane] ?? { kind: 'status', status: 400 })
  const waiting = tried.entries()
  let refusal = ''
  const work = async (): Promise<void> => {
    for (const [number, one] of waiting) {
      if (!one) continue
      const json = JSON.stringify(one.body)
      const answer = await call(fixture.gateway.url, json, {
        path,
        key: 'ann',
        agent,
        headers: { 'x-goog-api-key': 'sk-ann', 'x-session-id': `number-${number}` },
      })
      if (answer.status !== 200) refusal = `${answer.status} ${answer.text}`
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const received = fixture.upstream.received(lane)
  const read = received.map(({ text, path: asked }) => [
    ...readable(JSON.parse(text)),
    decodeURIComponent(asked),
  ])
  const numbers = read
    .filter((texts) => texts.some((text) => CODE.test(text)))
    .map((texts) => texts.map((text) => NUMBERED.exec(text)?.[1]).find((number) => number !== undefined))
  // Reasoning that its provider has signed is checked, and cannot be changed.
  const where = numbers
    .map((number) => tried[Number(number)]?.where ?? 'unknown')
    .filter((one) => lane !== 'messages' || !one.endsWith('.thinking'))
  return { where, received: received.length, refusal }
}

type Change = (given: string, text: string) => unknown

/** Ways to put a text in the place of a string of a request. */
const SPELLINGS: Readonly<Record<string, Change>> = {
  'as it stands': (_given, text) => text,
  'behind what stood there': (given, text) => `${given} ${text}`,
  'in JSON': (_given, text) => JSON.stringify({ note: text }),
  'in base64': (_given, text) => Buffer.from(text).toString('base64'),
  'in base64 for URLs': (_given, text) => Buffer.from(`${text} ÿÿÿ`).toString('base64url'),
  'in UTF-16 in base64': (_given, text) => Buffer.from(`\ufeff${text}`, 'utf16le').toString('base64'),
  'in a data URL of text': (_given, text) => `data:text/plain;base64,${Buffer.from(text).toString('base64')}`,
  'in a data URL of an image': (_given, text) =>
    `data:image/png;base64,${Buffer.from(text).toString('base64')}`,
  'in a data URL without base64': (_given, text) =>
    `DATA:text/plain;charset=utf-8,${encodeURIComponent(text)}`,
  'in base64 between other words': (_given, text) =>
    `Read (${Buffer.from(text).toString('base64')}), and answer.`,
  'in a data URL between other words': (_given, text) =>
    `See data:text/plain,${encodeURIComponent(text)}, and answer.`,
  'in a data URL in JSON': (_given, text) =>
    JSON.stringify({ file: `data:text/plain,${encodeURIComponent(text)}` }),
  'in the type of a data URL': (_given, text) => `data:text/plain;note=${text};base64,aGVsbG8=`,
}

/** By day, one in this many requests in other spellings than the plain one is tried. */
const DAY_SHARE = 293
/** By day, one in this many requests in the plain spelling is tried at channels for which it is converted. */
const CONVERTED_SHARE = 4

/**
 * The requests with a text in each spelling, by their numbers; those that are left out by day are undefined. By day,
 * the plain spelling is tried at every place where the channel speaks the client's protocol, and at some places at one
 * of the channels for which the request is converted.
 */
function spelled(
  body: unknown,
  isNative: boolean,
  road: number,
  roads: number,
): (ChangedDocument | undefined)[] {
  let number = -1
  const all = Object.entries(SPELLINGS).flatMap(([how, change]) =>
    [...changedPlaces(body, (given) => change(given, textOf((number += 1))))].map((one) => ({
      where: `${how}: ${one.where}`,
      body: one.body,
    })),
  )
  const plain = all.length / Object.keys(SPELLINGS).length
  const isTried = (at: number): boolean =>
    at < plain ? isNative || at % (CONVERTED_SHARE * roads) === road : (at + 7 * road) % DAY_SHARE === 0
  return byTier(
    all.map((one, at) => (isTried(at) ? one : undefined)),
    all,
  )
}

/** The requests with another address in the place of one. */
function* placesOfAddresses(body: unknown, other: string): Generator<ChangedDocument> {
  let isAddress = false
  const change = (given: string): string => {
    isAddress = given.startsWith(address)
    return isAddress ? other : given
  }
  for (const one of changedPlaces(body, change)) if (isAddress) yield one
}

const ROADS = REQUEST_FORMS.flatMap((form) =>
  form.servedBy.map((lane, at) => [form.name, lane, form, at] as const),
)

describe.each(ROADS)('a request of %s at a channel of %s', (name, lane, { path, body, servedBy }, road) => {
  test('is sent upstream where it has nothing that a guard looks for', async () => {
    const tried = [{ where: '', body: body(lane, address) }]
    expect(await unchecked(path(lane), lane, tried)).toEqual({
      where: [],
      received: 1,
      refusal: expect.any(String),
    })
  })

  test('has no text upstream that guards have not checked, wherever and however a text stands in the request', async () => {
    const tried = spelled(body(lane, address), lane === name, road, servedBy.length)
    const { where, received, refusal } = await unchecked(path(lane), lane, tried)
    expect(where).toEqual([])
    expect(received, refusal).toBeGreaterThan(0)
  })

  test('has no text upstream that the gateway has fetched and guards have not checked', async () => {
    const urls = Object.keys(FILES).flatMap((name) => (name.startsWith('/a.') ? [] : [name, `/moved${name}`]))
    const places = urls
      .flatMap((url) => [...placesOfAddresses(body(lane, address), `${address}${url}`)])
      .filter(
        (_, at) => lane === name || at % byTier(servedBy.length, 1) === road % byTier(servedBy.length, 1),
      )
    expect((await unchecked(path(lane), lane, places)).where).toEqual([])
  })
})

describe('a form', () => {
  const ENDPOINTS = [
    '/v1/images/edits',
    '/v1/images/variations',
    '/v1/audio/transcriptions',
    '/v1/audio/translations',
  ]
  const FIELDS = [
    'prompt',
    'size',
    'quality',
    'response_format',
    'language',
    'background',
    'user',
    'n',
    'x-unknown',
  ]
  const picture = {
    name: 'image',
    filename: 'a.png',
    type: 'image/png',
    content: Buffer.from('89504e470d0a1a0a', 'hex'),
  }
  const wide = Buffer.from(`\ufeff${TEXT}`, 'utf16le')
  const PARTS = [
    ...FIELDS.map((name) => ({ name, content: TEXT })),
    { name: 'prompt', content: `${'x'.repeat(270_000)} ${TEXT}` },
    { name: 'mask', filename: 'a.png', type: 'image/png', content: TEXT },
    { name: 'mask', filename: 'a.txt', type: 'application/octet-stream', content: TEXT },
    { name: 'mask', filename: 'a.bin', type: 'text/plain', content: wide },
    { name: 'mask', filename: `${TEXT}.png`, type: 'image/png', content: picture.content },
    { name: 'mask', filename: 'a.png', type: `image/png; note="${TEXT}"`, content: picture.content },
    { name: 'mask', filename: 'a.png', type: `image/png\r\nX-Note: ${TEXT}`, content: picture.content },
    { name: 'mask', filename: 'b.txt', type: 'text/plain', content: `${TEXT}${' and so on'.repeat(20_000)}` },
    { name: TEXT, content: 'x' },
  ]

  /** Where the part stands, and what stands before and after the form. */
  const ORDERS = ['last', 'first'] as const
  const AROUND = ['', TEXT] as const

  test.each(ENDPOINTS)('has no text upstream that guards have not checked: %s', async (path) => {
    const file = path.includes('audio')
      ? {
          name: 'file',
          filename: 'a.mp3',
          type: 'audio/mpeg',
          content: Buffer.from('4944330400000000', 'hex'),
        }
      : picture
    const found: string[] = []
    const model = { name: 'model', content: 'chat' }
    const rows = PARTS.flatMap((part) =>
      ORDERS.flatMap((order) => AROUND.map((text) => [part, order, text] as const)),
    )
    for (const [part, order, around] of pairsByDay(rows)) {
      fixture.upstream.script('chat', { kind: 'whole', body: '{"data":[{"b64_json":"aGk="}],"text":"hi"}' })
      const form = formBytes(order === 'last' ? [model, file, part] : [part, file, model])
      const body =
        around === '' ? form : Buffer.concat([Buffer.from(`${around}\r\n`), form, Buffer.from(around)])
      const answer = await call(fixture.gateway.url, body, formCall(path, 'ann', body))
      expect([200, 400], `${JSON.stringify(part).slice(0, 80)} ${answer.text}`).toContain(answer.status)
      const texts = fixture.upstream.received('chat').flatMap(({ body: sent }) => textsIn(sent))
      if (texts.some((text) => CODE.test(text)))
        found.push(`${part.name} ${JSON.stringify(part).slice(0, 80)}`)
    }
    expect(found).toEqual([])
    expect(fixture.upstream.received('chat').length).toBeGreaterThan(0)
  })
})
