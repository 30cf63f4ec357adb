import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const GATED = '"service_tier":"flex","safety_identifier":"s-1","inference_geo":"eu","speed":"fast"'
const MODELS = ['bytes', 'gated', 'open', 'through', 'nostore', 'nostorethrough', 'asked']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(MODELS),
    channels: [
      channel('bytes', upstream.baseUrl('bytes')),
      channel('gated', upstream.baseUrl('gated')),
      channel('open', upstream.baseUrl('open'), {
        allow: ['service_tier', 'safety_identifier', 'include_obfuscation', 'inference_geo', 'speed'],
      }),
      channel('through', upstream.baseUrl('through'), { pass_through: true }),
      channel('nostore', upstream.baseUrl('nostore'), { disable_store: true }),
      channel('nostorethrough', upstream.baseUrl('nostorethrough'), {
        disable_store: true,
        pass_through: true,
      }),
      channel('mapped', upstream.baseUrl('mapped'), { models: ['asked'], model_mapping: { asked: 'given' } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

async function forwarded(lane: string, body: string | Buffer): Promise<string> {
  fixture.upstream.script(lane, { kind: 'whole' })
  const answer = await fixture.chat('ann', body)
  expect(answer.status, answer.text).toBe(200)
  return fixture.upstream.only(lane).text
}

describe('bytes of a request', () => {
  const user = '"messages":[{"role":"user","content":"hi"}]'
  test.each([
    ['odd white space', `  {\t"model" :\n"bytes" ,\r\n ${user}   }  \n`],
    ['the order of keys', `{"zeta":1,${user},"alpha":2,"model":"bytes"}`],
    [
      'integers above 2^53',
      `{"model":"bytes",${user},"seed":9007199254740993,"x":123456789012345678901234567890}`,
    ],
    ['numbers as they are written', `{"model":"bytes",${user},"temperature":1.0,"top_p":1e-1,"y":[-0,1E2]}`],
    ['escapes as they are written', `{"model":"\\u0062ytes",${user},"x":"\\u00e9\\/é\\ud83d\\ude00😀"}`],
    ['unknown fields', `{"model":"bytes",${user},"of_tomorrow":{"deep":[null,true,{"a":{}}]}}`],
    ['keys that appear twice below the top', `{"model":"bytes",${user},"x":{"a":1,"a":2}}`],
    [
      'names with a meaning in JavaScript',
      `{"model":"bytes",${user},"__proto__":{"stream":true},"constructor":1}`,
    ],
    ['a gated name below the top', `{"model":"bytes",${user},"metadata":{"service_tier":"x","store":"y"}}`],
  ])('the upstream gets the original bytes of a request in which nothing must change: %s', async (_, body) =>
    expect(await forwarded('bytes', body)).toBe(body),
  )

  test('the content-length of an unchanged request is set and correct', async () => {
    await forwarded('bytes', `{"model":"bytes",${user},"x":"é😀"}`)
    const { headers, body } = fixture.upstream.only('bytes')
    expect(Number(headers['content-length'])).toBe(body.length)
  })
})

describe('a gated field', () => {
  const body = (model: string, more = GATED): string =>
    `{"model":"${model}","messages":[{"role":"user", "content":"hi"}],"seed":9007199254740993,${more},"zeta" : 1.50}`
  const without = (model: string): string =>
    `{"model":"${model}","messages":[{"role":"user", "content":"hi"}],"seed":9007199254740993,"zeta" : 1.50}`

  test('fields such as service_tier that the channel does not allow are removed from a request, and no other byte changes', async () => {
    expect(await forwarded('gated', body('gated'))).toBe(without('gated'))
  })
  test.each(['service_tier', 'safety_identifier', 'inference_geo', 'speed'])(
    'the field %s is removed where the channel does not allow it, and no other byte changes',
    async (field) => {
      expect(await forwarded('gated', body('gated', `"${field}":"x"`))).toBe(without('gated'))
    },
  )
  test('a field that the channel does not allow is removed at any position, even if its name is escaped', async () => {
    const rest = '"model":"gated","messages":[{"role":"user","content":"hi"}]'
    for (const text of [
      `{"speed":"x",${rest}}`,
      `{${rest},"speed":"x"}`,
      `{ "speed" : {"a":[1,"}"]} , ${rest} , "service_tier" : null }`,
      `{${rest},"\\u0073peed":"x"}`,
    ])
      expect(JSON.parse(await forwarded('gated', text))).toEqual(JSON.parse(`{${rest}}`))
  })
  test('a field such as service_tier is kept where the channel allows it', async () => {
    expect(await forwarded('open', body('open'))).toBe(body('open'))
  })
  test('a field such as service_tier is kept in pass-through mode', async () => {
    expect(await forwarded('through', body('through'))).toBe(body('through'))
  })
  test('include_obfuscation is removed from stream_options where the channel does not allow it', async () => {
    const options = '"stream_options":{"include_usage":true,"include_obfuscation":false}'
    const text = `{"model":"gated","stream":false,${options},"messages":[{"role":"user","content":"hi"}]}`
    expect(JSON.parse(await forwarded('gated', text)).stream_options).toEqual({ include_usage: true })
    expect(await forwarded('open', text.replace('gated', 'open'))).toBe(text.replace('gated', 'open'))
    expect(await forwarded('through', text.replace('gated', 'through'))).toBe(
      text.replace('gated', 'through'),
    )
  })
})

describe('the field store', () => {
  const stored = (model: string): string =>
    `{"model":"${model}","store":true,"messages":[{"role":"user","content":"hi"}]}`
  test('the field store is forwarded by default', async () => {
    expect(await forwarded('bytes', stored('bytes'))).toBe(stored('bytes'))
  })
  test.each(['nostore', 'nostorethrough'])(
    'the field store never reaches a channel that disables it (%s)',
    async (model) => {
      expect(JSON.parse(await forwarded(model, stored(model))).store).not.toBe(true)
    },
  )
})

test('only the value of the model changes in a request whose model is mapped', async () => {
  const body = '{ "seed":9007199254740993 , "model" : "asked","messages":[{"role":"user","content":"asked"}]}'
  expect(await forwarded('mapped', body)).toBe(body.replace('"model" : "asked"', '"model" : "given"'))
})

test("an upstream response of the client's dialect reaches the client byte for byte", async () => {
  const text = completionText('näïve 😀 \u2028', usageText(7, 3), 'a-dated-alias')
  fixture.upstream.script('bytes', { kind: 'whole', body: text })
  const answer = await fixture.chat('ann', ask('bytes'))
  expect(answer.text).toBe(text)
  expect(Number(answer.headers['content-length'] ?? answer.bytes.length)).toBe(Buffer.byteLength(text))
})

describe('content types', () => {
  test.each([
    ['application/json; charset=utf-8', 'application/json; charset=utf-8'],
    ['application/vnd.acme+json', 'application/vnd.acme+json'],
    ['application/json; charset', 'application/json'],
    ['application/json, text/plain', 'application/json'],
    ['json', 'application/json'],
    ['<b>json</b>', 'application/json'],
    ['', 'application/json'],
  ])('the upstream’s content type %j is %j for the client', async (given, told) => {
    fixture.upstream.script('bytes', { kind: 'whole', headers: { 'content-type': given } })
    expect((await fixture.chat('ann', ask('bytes'))).headers['content-type']).toBe(told)
  })

  test.each([
    ['text/event-stream; charset=utf-8', 'text/event-stream; charset=utf-8'],
    ['text/event-stream; charset', 'text/event-stream'],
    ['text/event-stream, text/html', 'text/event-stream'],
  ])('the content type %j of an upstream’s stream is %j for the client', async (given, told) => {
    fixture.upstream.script('bytes', { kind: 'stream', headers: { 'content-type': given } })
    expect((await fixture.chat('ann', askStream('bytes'))).headers['content-type']).toBe(told)
  })
})
