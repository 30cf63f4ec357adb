import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { clientsOf, type Client, MODEL, sentTo, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture

let message: Client
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  message = clientsOf(fixture).message
})
afterAll(() => fixture?.close())

const messages = [{ role: 'user', content: 'hi' }]

/** The first bytes of an image, which identify its type. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('an image by its URL', () => {
  const asked: IncomingMessage[] = []
  let server: Server
  let permissive: Fixture
  beforeAll(async () => {
    server = createServer((request, reply) => {
      asked.push(request)
      if (request.url === '/elsewhere') reply.writeHead(302, { location: '/a.png' }).end()
      else if (request.url === '/large')
        reply.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(2_000_000))
      else if (request.url?.startsWith('/as/')) {
        const type = decodeURIComponent(request.url.slice('/as/'.length))
        reply.writeHead(200, type === 'none' ? {} : { 'content-type': type }).end(PNG)
      } else if (request.url?.split('?')[0] === '/a.png')
        reply.writeHead(200, { 'content-type': 'image/png' }).end('picture')
      else reply.writeHead(404).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    permissive = await fixtureOfBoth({
      media: { allow_private_networks: true, max_bytes: '1MiB', timeout: '60s' },
    })
  })
  afterAll(async () => {
    await permissive?.close()
    server?.close()
  })

  const withPicture = (url: string): object => ({
    model: MODEL.messages,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  })
  const local = (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`

  test.each(['a.png', '10.0.0.1', '169.254.169.254', '[::1]', '[::ffff:127.0.0.1]', '0x7f.1', 'localhost'])(
    'an image URL with a private address is refused, and neither that address nor the upstream is called: %s',
    async (host) => {
      asked.length = 0
      fixture.upstream.forget(MODEL.messages)
      const url = host === 'a.png' ? local('/a.png') : `http://${host}/a.png`
      const answer = await fixture.chat('ann', withPicture(url))
      expect(answer.status).toBe(400)
      expect(answer.json().error).toMatchObject({
        type: 'invalid_request_error',
        message: expect.stringContaining('not public'),
      })
      expect(fixture.upstream.received(MODEL.messages)).toEqual([])
      expect(asked).toEqual([])
    },
  )

  test.each(['/a.png', '/elsewhere'])(
    'an image URL at a private address that the operator allows is fetched, and the image is sent to the upstream: %s',
    async (path) => {
      permissive.upstream.script(MODEL.messages, wholeMessage([{ text: 'A picture.' }]))
      const answer = await permissive.chat('ann', withPicture(local(path)))
      expect(answer.status).toBe(200)
      const { messages: sent } = JSON.parse(permissive.upstream.only(MODEL.messages).text)
      const data = Buffer.from('picture').toString('base64')
      expect(sent[0].content[1]).toEqual({
        type: 'image',
        source: { type: 'base64', media_type: 'image/png', data },
      })
    },
  )

  test('a request may name 200 different URLs to be fetched, each of them several times', async () => {
    asked.length = 0
    permissive.upstream.script(MODEL.messages, wholeMessage([{ text: 'Pictures.' }]))
    const urls = Array.from({ length: 200 }, (_, index) => local(`/a.png?${index}`))
    const content = [...urls, ...urls].map((url) => ({ type: 'image_url', image_url: { url } }))
    const body = { model: MODEL.messages, messages: [{ role: 'user', content }] }
    expect(await permissive.chat('ann', body)).toMatchObject({ status: 200 })
    expect(asked).toHaveLength(200)
  })

  test('a request with more than 200 different URLs to be fetched is refused before any is fetched', async () => {
    asked.length = 0
    const urls = Array.from({ length: 201 }, (_, index) => local(`/a.png?${index}`))
    const expected = 'expected at most 200 different URLs of files in a request, found 201'
    const pictures = urls.map((url) => ({ type: 'image_url', image_url: { url } }))
    const chat = { model: MODEL.messages, messages: [{ role: 'user', content: pictures }] }
    expect(await permissive.chat('ann', chat)).toMatchObject({
      status: 400,
      text: expect.stringContaining(expected),
    })
    const content = urls.map((url) => ({ type: 'document', source: { type: 'url', url } }))
    const body = { model: MODEL.chat, max_tokens: 100, messages: [{ role: 'user', content }] }
    const refused = await permissive.chat('ann', body, { path: '/v1/messages' })
    expect(refused.status).toBe(400)
    expect(refused.json()).toMatchObject({
      type: 'error',
      error: { code: 'invalid_request', message: expect.stringContaining(expected) },
    })
    expect(asked).toEqual([])
  })

  test.each([
    ['/gone', 'responded 404'],
    ['/large', 'larger than'],
  ])('an image that cannot be fetched is a 400 with the reason: %s', async (path, why) => {
    permissive.upstream.forget(MODEL.messages)
    const answer = await permissive.chat('ann', withPicture(local(path)))
    expect(answer.status).toBe(400)
    expect(answer.json().error.message).toContain(why)
    expect(permissive.upstream.received(MODEL.messages)).toEqual([])
    // The gateway keeps serving.
    permissive.upstream.script(MODEL.messages, wholeMessage([{ text: 'Hello.' }]))
    expect((await permissive.chat('ann', { model: MODEL.messages, messages })).status).toBe(200)
  })

  test.each(['application/octet-stream', 'binary/octet-stream', 'image/*', '*/*', 'none'])(
    'a fetched image is sent with the media type of its bytes if its server states the type %s',
    async (type) => {
      permissive.upstream.script(MODEL.messages, wholeMessage([{ text: 'A picture.' }]))
      const path = `/as/${encodeURIComponent(type)}`
      expect((await permissive.chat('ann', withPicture(local(path)))).status).toBe(200)
      const { messages: sent } = JSON.parse(permissive.upstream.only(MODEL.messages).text)
      expect(sent[0].content[1]).toEqual({
        type: 'image',
        source: { type: 'base64', media_type: 'image/png', data: PNG.toString('base64') },
      })
    },
  )

  test('an image URL is forwarded unfetched to an upstream that accepts image URLs', async () => {
    fixture.upstream.script(MODEL.chat, wholeChat({ text: 'A picture.' }))
    const image = { type: 'image', source: { type: 'url', url: 'http://10.0.0.1/a.png' } }
    expect((await message({ messages: [{ role: 'user', content: [image] }] })).status).toBe(200)
    expect(sentTo(fixture, MODEL.chat).messages[0]?.['content']).toEqual([
      { type: 'image_url', image_url: { url: 'http://10.0.0.1/a.png' } },
    ])
  })
})

test.each([undefined, null, 'wave'])(
  'audio whose format is %s is sent to a messages upstream with the media type of its bytes',
  async (format) => {
    const data = Buffer.from('RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0', 'latin1').toString('base64')
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'A sound.' }]))
    const content = [{ type: 'input_audio', input_audio: { data, format } }]
    const answer = await fixture.chat('ann', {
      model: MODEL.messages,
      messages: [{ role: 'user', content }],
    })
    expect(answer.status, answer.text).toBe(200)
    expect(sentTo(fixture, MODEL.messages).messages[0]?.['content']).toEqual([
      { type: 'document', source: { type: 'base64', media_type: 'audio/wav', data } },
    ])
  },
)

describe('an image in the request itself with an inexact media type', () => {
  const data = PNG.toString('base64')

  test('an image with an inexact media type such as image/* is sent to a messages upstream with the type of its bytes', async () => {
    fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'A picture.' }]))
    const image = { type: 'image_url', image_url: { url: `data:image/*;base64,${data}` } }
    const asked = { model: MODEL.messages, messages: [{ role: 'user', content: [image] }] }
    expect((await fixture.chat('ann', asked)).status).toBe(200)
    expect(sentTo(fixture, MODEL.messages).messages[0]?.['content']).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
    ])
  })

  test('an image with an inexact media type such as image/* is sent to a chat upstream with the type of its bytes', async () => {
    fixture.upstream.script(MODEL.chat, wholeChat({ text: 'A picture.' }))
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/*', data } }
    expect((await message({ messages: [{ role: 'user', content: [image] }] })).status).toBe(200)
    expect(sentTo(fixture, MODEL.chat).messages[0]?.['content']).toEqual([
      { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
    ])
  })
})
