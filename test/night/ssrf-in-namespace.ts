import { createServer, type Server } from 'node:http'
import { MODEL, fixtureOfBoth } from '../conversion/fixture.ts'
import { startDns } from '../fixtures/dns-server.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { PUBLIC_ADDRESS } from '../fixtures/network.ts'
import { hostileUrls, ZONE } from '../faults/hostile-urls.ts'

// Runs in a network namespace, where private addresses belong to this machine, and the system's resolver
// queries the test's name server. Prints one line of JSON: the accepted URLs and the connected addresses. See
// test/night/ssrf.test.ts.

/** Number of times that each URL is tried. */
const ROUNDS = 3
const PORTS = [80, 443, 6379, 8080]

/** Connected addresses; the public one serves images. */
const called = new Map<string, number>()

function serverOn(port: number): Promise<Server> {
  const server = createServer((request, reply) => {
    reply.shouldKeepAlive = false
    const [path = '', query = ''] = (request.url ?? '').slice(1).split('?')
    if (/^3\d\d$/.test(path)) reply.writeHead(Number(path), { location: decodeURIComponent(query) }).end()
    else reply.writeHead(200, { 'content-type': 'image/png' }).end('picture')
  })
  server.on('connection', ({ localAddress = '' }) => {
    const address = `${localAddress.replace('::ffff:', '')} ${port}`
    called.set(address, (called.get(address) ?? 0) + 1)
  })
  return new Promise((resolve) => server.listen(port, '::', () => resolve(server)))
}

const dns = await startDns(ZONE, 53)
const servers = await Promise.all(PORTS.map(serverOn))
const fixture = await fixtureOfBoth({ media: { timeout: '2s' } })
fixture.upstream.script(MODEL.messages, wholeMessage([{ text: 'x' }]))

async function statusOf(url: string): Promise<number> {
  const part = { type: 'image_url', image_url: { url } }
  const body = { model: MODEL.messages, messages: [{ role: 'user', content: [part] }] }
  const { status } = await fixture.chat('ann', body)
  return status === 503 ? statusOf(url) : status
}

const letIn: string[] = []
const urls = Array.from({ length: ROUNDS }, () => [...hostileUrls(6379), ...hostileUrls(8080)]).flat()
let next = 0
const worker = async (): Promise<void> => {
  for (let url = urls[next++]; url !== undefined; url = urls[next++]) {
    const status = await statusOf(url)
    if (status !== 400) letIn.push(`${status} ${url}`)
  }
}
await Promise.all(Array.from({ length: 16 }, worker))
const controls = await Promise.all(
  ['http://public.test/a.png', `http://${PUBLIC_ADDRESS}/a.png`].map(statusOf),
)
const rebinding: number[] = []
for (let i = 0; i < 200; i++)
  rebinding.push(await statusOf(`http://${i % 2 === 0 ? 'rebind' : 'rebind6'}.test/a.png`))
const refused = rebinding.filter((status) => status === 400).length
const asked = dns.asked().length

await fixture.close()
await dns.stop()
for (const server of servers) server.close()
console.log(
  JSON.stringify({ tried: urls.length, letIn, called: [...called.keys()], controls, refused, asked }),
)
