import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { Pool } from 'undici'
import { CLIENT_KEY, MODELS, PATHS, SHORT_KEY, type Wire } from '../load/wire.ts'
import { Commits } from './commits.ts'
import { modelList } from './model-list.ts'
import { chatRequest, messagesRequest } from './requests.ts'
import { StreamAnswer } from './stream-answer.ts'
import { ToChat } from './to-chat.ts'
import { ToMessages } from './to-messages.ts'
import { WholeAnswer } from './whole-answer.ts'

/**
 * The minimum that a gateway costs on `node:http` and `undici`: it parses the body, finds the client's key
 * and the channel of the model, forwards the request with the channel's key, and reads the usage of the
 * response. It converts events between chat and messages if the dialects differ. Nothing is checked, held,
 * limited, stored, logged or charged; only if a database is given does each unstreamed response wait until
 * its tokens are on the disk. Sends its port to its parent process.
 */
const [, , url, database] = process.argv
const upstream = new Pool(String(url), { connections: null })
const commits = database === undefined ? undefined : new Commits(database)
const clients = new Map([
  [CLIENT_KEY, 1],
  [SHORT_KEY, 2],
  ...Array.from({ length: 1000 }, (_, i) => [`sk-${i}`, i] as const),
])
const channels = new Map<unknown, { readonly key: string; readonly wire: Wire }>(
  (['chat', 'messages', 'responses', 'gemini'] as const).flatMap((wire) =>
    MODELS[wire].map((model) => [model, { key: 'Bearer upstream-key', wire }] as const),
  ),
)

function forward(request: IncomingMessage, reply: ServerResponse, body: Buffer): void {
  const path = request.url ?? ''
  const client =
    (['messages', 'responses', 'gemini'] as const).find((wire) => path.startsWith(PATHS[wire])) ?? 'chat'
  const asked = JSON.parse(body.toString()) as Record<string, unknown>
  const inPath = client === 'gemini' ? path.slice(PATHS.gemini.length, path.indexOf(':')) : undefined
  const channel = channels.get(inPath ?? asked['model'])
  if (!channel) {
    reply.writeHead(404).end()
    return
  }
  const isNative = channel.wire === client
  const answer =
    asked['stream'] === true || path.includes(':streamGenerateContent')
      ? new StreamAnswer(reply, converter())
      : new WholeAnswer(reply, commits)
  upstream.dispatch(
    {
      path: channel.wire === 'gemini' ? path : PATHS[channel.wire],
      method: 'POST',
      headers: { authorization: channel.key, 'content-type': 'application/json' },
      body: isNative ? body : JSON.stringify(client === 'chat' ? messagesRequest(asked) : chatRequest(asked)),
    },
    answer,
  )

  function converter(): ToChat | ToMessages | undefined {
    if (isNative) return undefined
    return client === 'chat' ? new ToChat() : new ToMessages()
  }
}

const list = modelList([...channels.keys()].map(String))

const server = createServer((request, reply) => {
  if (!clients.has(request.headers.authorization?.slice('Bearer '.length) ?? '')) {
    reply.writeHead(401).end()
    return
  }
  if (request.method === 'GET') {
    reply.writeHead(200, { 'content-type': 'application/json', 'content-length': list.length }).end(list)
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => forward(request, reply, Buffer.concat(chunks)))
})
server.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () =>
  process.send?.((server.address() as AddressInfo).port),
)
