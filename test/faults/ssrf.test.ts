import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createListener, type Server as Listener } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MODEL, fixtureOfBoth } from '../conversion/fixture.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { type FullResponse, retryWhileShed } from '../fixtures/client.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Network, PUBLIC_ADDRESS, startNetwork } from '../fixtures/network.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'
import { hostileUrls, ZONE } from './hostile-urls.ts'

const MEDIA = { max_bytes: '1MiB', timeout: '1s' }
const TOO_LATE = 'took too long'
/** Fetches of a name whose address changes. */
const LOOKUPS = byTier(8, 20)
/** Concurrent requests. */
const ABREAST = 16

let internet: Server
let inside: Listener[]
let insidePort: number
let touched = 0
let network: Network
let fixture: Fixture
beforeAll(async () => {
  internet = await listening(createServer(serve))
  // The same port of both loopback addresses, so that every spelling of this machine is detected.
  const first = await listening(createListener(touch))
  insidePort = portOf(first)
  inside = [first, await listening(createListener(touch), '::1', insidePort)]
  network = await startNetwork(ZONE, portOf(internet))
  fixture = await fixtureOfBoth({ media: MEDIA }, { env: network.env })
})
afterAll(async () => {
  await fixture?.close()
  await network?.stop()
  internet?.close()
  for (const listener of inside ?? []) listener.close()
})

function touch(): void {
  touched += 1
}

/** The public internet: images, redirects to the URL in the query, and servers that misbehave. */
function serve({ url = '' }: IncomingMessage, reply: ServerResponse): void {
  const [path = '', query = ''] = url.slice(1).split('?')
  reply.on('error', () => {})
  // On a kept connection the name would not be resolved again.
  reply.shouldKeepAlive = false
  if (/^3\d\d$/.test(path)) reply.writeHead(Number(path), { location: decodeURIComponent(query) }).end()
  else if (path === 'a.png') reply.writeHead(200, { 'content-type': 'image/png' }).end('picture')
  else if (path === 'endless') {
    reply.writeHead(200, { 'content-type': 'image/png' })
    const more = (): void => {
      while (!reply.destroyed && reply.write(Buffer.alloc(65_536)));
      if (!reply.destroyed) reply.once('drain', more)
    }
    more()
  } else if (path === 'announced') reply.writeHead(200, { 'content-length': '99999999' }).write('x')
  else if (path === 'drip') {
    reply.writeHead(200, { 'content-type': 'image/png' })
    const timer = setInterval(() => reply.write('x'), 50)
    reply.on('close', () => clearInterval(timer))
  } else if (path === 'almost') setTimeout(() => reply.end('picture'), 800)
  else if (path !== 'silent') reply.writeHead(404).end()
}

function listening<Kind extends Server | Listener>(
  server: Kind,
  host = '127.0.0.1',
  port = 0,
): Promise<Kind> {
  return new Promise((resolve) => server.listen(port, host, () => resolve(server)))
}

function portOf(server: Server | Listener): number {
  return (server.address() as AddressInfo).port
}

/** Every way to refer to a URL in a request that is converted. */
const PARTS: Record<string, (url: string) => Promise<FullResponse>> = {
  image_url: (url) => chat({ type: 'image_url', image_url: { url } }),
  'image_url as a text': (url) => chat({ type: 'image_url', image_url: url }),
  video_url: (url) => chat({ type: 'video_url', video_url: { url } }),
  file: (url) => chat({ type: 'file', file: { filename: 'a.pdf', file_data: url } }),
  input_audio: (url) => chat({ type: 'input_audio', input_audio: { format: 'mp3', data: url } }),
  'a document source': (url) => message({ type: 'document', source: { type: 'url', url } }),
  'a document of a tool': (url) =>
    message(
      {
        type: 'tool_result',
        tool_use_id: 'call_1',
        content: [{ type: 'document', source: { type: 'url', url } }],
      },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'call_1', name: 'read', input: {} }],
      },
    ),
}

function chat(part: object): Promise<FullResponse> {
  return admitted({ model: MODEL.messages, messages: [{ role: 'user', content: [part] }] })
}

function message(block: object, ...before: object[]): Promise<FullResponse> {
  const messages = [{ role: 'user', content: 'hi' }, ...before, { role: 'user', content: [block] }]
  return admitted({ model: MODEL.chat, max_tokens: 100, messages }, '/v1/messages')
}

function admitted(body: object, path = '/v1/chat/completions'): Promise<FullResponse> {
  return retryWhileShed(() => fixture.chat('ann', body, { path }))
}

/** The answer to a request whose URL is answered at once, but may be fetched too slowly by a busy machine. */
async function fetched(ask: () => Promise<FullResponse>): Promise<FullResponse> {
  for (;;) {
    const answer = await ask()
    if (!answer.text.includes(TOO_LATE)) return answer
  }
}

/** Connections of the gateway other than those to its upstream. */
function unexpectedConnections(): string[] {
  return network
    .connections()
    .filter(({ port }) => port !== fixture.upstream.port)
    .map(({ address, port }) => `${address} ${port}`)
}

async function allOf<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items]
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: ABREAST }, worker))
}

/** The URLs that a part is tried with: by day two sevenths of them, in rotation, so that each URL is tried in two parts. */
function triedUrls(part: string): readonly string[] {
  const turn = Object.keys(PARTS).indexOf(part)
  return hostileUrls(insidePort).filter((_, at) => byTier([0, 1].includes((at + turn) % 7), true))
}

describe("a URL in a client's request", () => {
  test('the tests of URLs in requests cover well over a hundred spellings of private addresses', () => {
    expect(new Set(hostileUrls(1)).size).toBeGreaterThan(120)
  })

  test.each(Object.entries(PARTS))(
    "a URL in a client's request never reaches a private address: %s",
    async (part, ask) => {
      fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'x' }]))
      fixture.upstream.script(MODEL.chat, wholeChat({ text: 'x' }))
      const letIn: string[] = []
      await allOf(triedUrls(part), async (url) => {
        const { status } = await ask(url)
        // A data: URL without data contains all there is, and fetches nothing.
        if (status !== 400) letIn.push(`${status} ${url}`)
      })
      expect(letIn).toEqual([])
      expect(unexpectedConnections().filter((each) => each !== PUBLIC)).toEqual([])
      expect(touched).toBe(0)
      expect(fixture.upstream.received(MODEL.messages)).toEqual([])
      expect(fixture.upstream.received(MODEL.chat)).toEqual([])
    },
  )

  test("a URL in a client's request is forwarded, and not fetched, where the upstream accepts image URLs", async () => {
    fixture.upstream.script(MODEL.chat, wholeChat({ text: 'x' }))
    const before = unexpectedConnections().length
    await allOf(hostileUrls(insidePort), async (url) => {
      await message({ type: 'image', source: { type: 'url', url } })
    })
    expect(unexpectedConnections()).toHaveLength(before)
    expect(touched).toBe(0)
  })

  test.each(Object.entries(PARTS).filter(([name]) => name !== 'input_audio'))(
    "a URL in a client's request is fetched from a public address: %s",
    async (_, ask) => {
      fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'x' }]))
      fixture.upstream.script(MODEL.chat, wholeChat({ text: 'x' }))
      const paths = ['public.test/a.png', `${PUBLIC_ADDRESS}/a.png`, 'public.test:80/302?%2Fa.png']
      for (const path of paths) {
        const answer = await fetched(() => ask(`http://${path}`))
        expect(answer.status, answer.text).toBe(200)
      }
      const sent = [...fixture.upstream.received(MODEL.messages), ...fixture.upstream.received(MODEL.chat)]
      expect(sent).toHaveLength(paths.length)
      for (const { text } of sent) expect(text).toContain(Buffer.from('picture').toString('base64'))
      expect(unexpectedConnections()).toContain(PUBLIC)
    },
  )

  test.each(['rebind.test', 'rebind6.test'])(
    'a name server that changes its answers cannot lead the fetch of a URL to a private address: %s',
    async (name) => {
      fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'A picture.' }]))
      const statuses: number[] = []
      for (let i = 0; i < LOOKUPS; i++) {
        // A new path each time; the name in the redirect is looked up again.
        const url = i % 2 === 0 ? `http://${name}/a.png?${i}` : `http://public.test/302?http://${name}/a.png`
        statuses.push((await PARTS['image_url']?.(url))?.status ?? 0)
      }
      expect(network.dns.asked().filter((asked) => asked === name).length).toBeGreaterThan(1)
      expect(new Set(statuses)).toEqual(new Set([200, 400]))
      expect(unexpectedConnections().filter((each) => each !== PUBLIC)).toEqual([])
      expect(touched).toBe(0)
    },
  )
})

/** Only the public server is reached, at the ports that serve images. */
const PUBLIC = `${PUBLIC_ADDRESS} 80`

describe('a fetched URL', () => {
  test.each([
    ['endless', 'larger than 1048576 bytes'],
    ['announced', 'larger than 1048576 bytes'],
    ['drip', TOO_LATE],
    ['silent', TOO_LATE],
  ])('the fetch of a URL in a request is limited in size and time: %s', async (path, why) => {
    const ask = () => chat({ type: 'image_url', image_url: { url: `http://public.test/${path}` } })
    const answer = await (why === TOO_LATE ? ask() : fetched(ask))
    expect(answer.status).toBe(400)
    expect(answer.json().error.message).toContain(why)
    const open = (): Promise<number> =>
      new Promise((resolve) => internet.getConnections((_, count) => resolve(count)))
    await expect.poll(open).toBe(0)
  })
})

describe('a request with many slow URLs', () => {
  test.each(['silent', 'almost'])(
    'a request with 200 slow URLs is refused as soon as one with a single slow URL, and delays no other request: %s',
    async (path) => {
      fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'x' }]))
      /** The status of a request with so many slow URLs, and the milliseconds that it took. */
      const answered = async (count: number) => {
        const parts = Array.from({ length: count }, (_, i) => ({
          type: 'image_url',
          image_url: { url: `http://public.test/${path}?${i}` },
        }))
        const began = performance.now()
        const answer = await admitted({ model: MODEL.messages, messages: [{ role: 'user', content: parts }] })
        return { status: answer.status, ms: performance.now() - began }
      }
      const one = await answered(1)
      const many = await answered(200)
      expect(many.status).toBe(400)
      // One after the other, they would take two hundred times as long.
      expect(many.ms).toBeLessThan(20 * one.ms)
      const url = 'http://public.test/a.png'
      expect((await fetched(() => chat({ type: 'image_url', image_url: { url } }))).status).toBe(200)
    },
  )
})

describe('where the operator allows private networks', () => {
  test('a URL at a private address is fetched, at any port, if the operator allows private networks', async () => {
    const permissive = await fixtureOfBoth({
      media: { ...MEDIA, timeout: '60s', allow_private_networks: true },
    })
    try {
      permissive.upstream.script(MODEL.messages, wholeMessage([{ text: 'A picture.' }]))
      const url = `http://localhost:${portOf(internet)}/a.png`
      const part = { type: 'image_url', image_url: { url } }
      const body = { model: MODEL.messages, messages: [{ role: 'user', content: [part] }] }
      const answer = await permissive.chat('ann', body)
      expect(answer.status, answer.text).toBe(200)
    } finally {
      await permissive.close()
    }
  })
})
