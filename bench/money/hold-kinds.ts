/**
 * Prints what one call of each kind holds in relation to what it is charged: `npm run bench -- hold-kinds`. The
 * answers, their tokens and the cached part of a conversation are those of the simulated providers.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEMO_MODELS, startSimulator } from '@sluice/simulator'
import { channel, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { databaseOf } from '../../test/fixtures/database.ts'
import { startGateway } from '../../test/fixtures/gateway.ts'
import { agentTurns } from './hold-agents.ts'

/** Time for which a provider thinks, so that the hold of a call can be read. */
const ANSWER_MS = 400
const TURNS = 10
const PARAGRAPH = 'The harbour was quiet in the morning, and the boats lay in two rows along the wall. '
/** A passage of about 2,000 bytes, as an index of documents is made of. */
const PASSAGE = PARAGRAPH.repeat(24)

/** Calls of one kind; the last one is measured. */
interface Kind {
  readonly name: string
  readonly path: string
  readonly bodies: readonly string[]
}

const agent = agentTurns({
  name: 'kinds',
  turns: TURNS,
  bytes: 400_000,
  fields: {
    model: 'demo-chat',
    max_tokens: 32_000,
    stream: true,
    stream_options: { include_usage: true },
  },
})

const chat = (fields: object): string =>
  JSON.stringify({
    model: 'demo-chat',
    messages: [
      { role: 'system', content: 'You are a helpful assistant. Answer in plain words.' },
      { role: 'user', content: `${PARAGRAPH.repeat(6)}Say in one paragraph what happens here.` },
    ],
    ...fields,
  })

const KINDS: readonly Kind[] = [
  {
    name: 'a chat, whole, max_tokens 1,000',
    path: '/v1/chat/completions',
    bodies: [chat({ max_tokens: 1000 })],
  },
  { name: 'a chat, whole, without a maximum', path: '/v1/chat/completions', bodies: [chat({})] },
  {
    name: 'a chat, streamed, without a maximum',
    path: '/v1/chat/completions',
    bodies: [chat({ stream: true, stream_options: { include_usage: true } })],
  },
  {
    name: 'an agent, its first turn, max_tokens 32,000',
    path: '/v1/chat/completions',
    bodies: [agent.body(0)],
  },
  {
    name: `an agent, its turn ${TURNS}, max_tokens 32,000`,
    path: '/v1/chat/completions',
    bodies: Array.from({ length: TURNS }, (_, turn) => agent.body(turn)),
  },
  {
    name: 'embeddings of 96 passages of 2 KB',
    path: '/v1/embeddings',
    bodies: [
      JSON.stringify({
        model: 'demo-embed',
        input: Array.from({ length: 96 }, (_, index) => `${index}. ${PASSAGE}`),
      }),
    ],
  },
  {
    name: 'an image, 1024x1024, medium',
    path: '/v1/images/generations',
    bodies: [
      JSON.stringify({
        model: 'demo-image',
        prompt: `A watercolour of this scene: ${PARAGRAPH}`,
        size: '1024x1024',
        quality: 'medium',
        n: 1,
      }),
    ],
  },
]

/** USD per million tokens. */
const PRICES = {
  'demo-chat': { input: 2, cache_read: 0.5, output: 8 },
  'demo-embed': { input: 0.02, output: 0 },
  'demo-image': { input: 5, output: 10, image_output: 40 },
}

/** A server that passes requests on after a while. */
async function startSlow(
  target: string,
): Promise<{ readonly url: string; readonly [Symbol.dispose]: () => void }> {
  const { origin, pathname } = new URL(target)
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    await sleep(ANSWER_MS)
    const answer = await fetch(`${origin}${request.url}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: request.headers.authorization ?? '' },
      body,
    })
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}${pathname}`,
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function main(): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  opened.defer(() => simulator.close())
  const slow = async (url: string): Promise<string> => opened.use(await startSlow(url)).url
  const upstreams = [
    ['chat', await slow(simulator.chatUrl), DEMO_MODELS.chat],
    ['embeddings', await slow(simulator.embeddingsUrl), DEMO_MODELS.embeddings],
    ['media', await slow(simulator.mediaUrl), DEMO_MODELS.media],
  ] as const
  const gateway = await startGateway({
    config: {
      models: Object.fromEntries(
        Object.entries(PRICES).map(([model, price]) => [model, { vendor: 'simulator', price }]),
      ),
      channels: upstreams.map(([name, url, models]) => channel(name, url, { models: [...models] })),
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
    env: { LOG_LEVEL: 'warn' },
  })
  opened.defer(() => gateway.discard())
  const database = databaseOf(gateway.dataDir)

  /** Makes a call, and returns the largest hold seen while it ran. */
  async function heldBy(path: string, body: string): Promise<number> {
    let held = 0
    const end = new AbortController()
    const call = fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-ann' },
      body,
    })
      .then(async (answer) => {
        const text = await answer.text()
        if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`)
      })
      .finally(() => end.abort())
    while (!end.signal.aborted) {
      for (const { amount } of database.openHolds()) held = Math.max(held, amount)
      await sleep(10)
    }
    await call
    return held
  }

  console.log('quota units; 500,000 are a dollar\n')
  console.log('| A call | Held | Charged | Held ÷ charged |\n|---|---|---|---|')
  for (const { name, path, bodies } of KINDS) {
    let held = 0
    for (const body of bodies) held = await heldBy(path, body)
    const charged = database.usage().at(-1)?.quota ?? 0
    const row = [name, held.toLocaleString('en'), charged.toLocaleString('en'), (held / charged).toFixed(2)]
    console.log(`| ${row.join(' | ')} |`)
  }
}

await main()
