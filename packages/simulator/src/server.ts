import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type BatchApi, serveBatches } from './batches/serve-batches.ts'
import { type Fields, asFields, asString } from './fields.ts'
import { replyWithFaults } from './faults.ts'
import { type Pace, sendAtPace } from './pace.ts'
import { Refusal, REFUSAL_STATUS } from './refusal.ts'
import { serveResponsesSockets } from './responses-socket.ts'
import type { Call, Frame, Reply, ReplyTimeAndIds, Upstream } from './upstream.ts'

const MAX_BODY_BYTES = 64 * 1024 * 1024

/** Serves one protocol on a free port of the loopback address, and the batches of its provider, if it has any. */
export async function serveUpstream(
  upstream: Upstream,
  pace: Pace,
  batches?: BatchApi,
): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    void handle(upstream, pace, batches, request, response)
  })
  if (upstream.hasSockets) serveResponsesSockets(server, upstream, (call) => framesOf(call, upstream), pace)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1`, server }
}

function framesOf(call: Call, upstream: Upstream): readonly Frame[] {
  const reply = replyTo(call, upstream, { created: Math.floor(Date.now() / 1000), id: freshId })
  if (reply.kind !== 'stream') throw new Refusal('malformed', 'Only streams are sent over a WebSocket')
  return reply.frames
}

async function handle(
  upstream: Upstream,
  pace: Pace,
  batches: BatchApi | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const stamp: ReplyTimeAndIds = { created: Math.floor(Date.now() / 1000), id: freshId }
  response.setHeader('x-request-id', stamp.id('req_'))
  try {
    if (batches && (await serveBatches(batches, upstream.keyOf(request.headers), request, response))) return
    await sendAtPace(response, replyTo(await read(upstream, request), upstream, stamp), pace)
  } catch (error) {
    // Other errors mean that the client has disconnected.
    if (!(error instanceof Refusal) || response.headersSent) return void response.destroy()
    response.writeHead(REFUSAL_STATUS[error.kind], { 'content-type': 'application/json' })
    response.end(JSON.stringify(upstream.refuse(error, stamp)))
  }
}

async function read(upstream: Upstream, request: IncomingMessage): Promise<Call> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
  const bytes = await collected(request)
  const contentType = request.headers['content-type'] ?? ''
  const form = contentType.startsWith('multipart/') ? await formIn(bytes, contentType) : undefined
  const account = upstream.keyOf(request.headers)
  if (account === '') throw new Refusal('missing_key', 'No API key was given')
  return {
    method: request.method ?? '',
    path: pathname.replace(/^\/v1(?:beta)?/, ''),
    query: searchParams,
    headers: request.headers,
    account,
    ...(form ?? { body: bytes.length === 0 ? {} : parsed(bytes) }),
  }
}

function replyTo(call: Call, upstream: Upstream, stamp: ReplyTimeAndIds): Reply {
  const { method, path } = call
  const body = upstream.bodyIfServed(call)
  if (!body) {
    const answer = isList(call) ? listOf(upstream) : upstream.other?.(call)
    if (answer !== undefined) return { kind: 'whole', body: answer, tokens: 0 }
    throw new Refusal('unknown_path', `There is nothing at ${method} ${path.slice(0, 200)}`)
  }
  const model = asString(body.model)
  if (model === '') throw new Refusal('malformed', 'model: a name is required')
  if (!upstream.models.includes(model)) throw new Refusal('unknown_model', model.slice(0, 200))
  const { faults } = upstream
  if (!faults) return upstream.reply(body, model, stamp, call)
  return replyWithFaults(faults, body, (asked) => upstream.reply(asked, model, stamp, call))
}

function isList({ method, path }: Call): boolean {
  return method === 'GET' && path === '/models'
}

function listOf({ models }: Upstream): unknown {
  return { object: 'list', data: models.map((id) => ({ id, object: 'model', owned_by: 'simulator' })) }
}

async function collected(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new Refusal('too_large', 'The request is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Reads the fields of a form; fields that are numbers in JSON become numbers. */
async function formIn(bytes: Buffer, contentType: string): Promise<Pick<Call, 'body' | 'file'>> {
  let form: FormData
  try {
    form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } }).formData()
  } catch {
    throw new Refusal('malformed', 'The body of the request is not a form')
  }
  const texts: Record<string, unknown> = {}
  let file: Buffer | undefined
  for (const [name, value] of form) {
    if (typeof value === 'string') texts[name] = NUMBERS.has(name) ? Number(value) : value
    else if (name === 'file') file = Buffer.from(await value.arrayBuffer())
  }
  return { body: texts, ...(file && { file }) }
}

const NUMBERS: ReadonlySet<string> = new Set(['n', 'partial_images', 'temperature'])

function parsed(bytes: Buffer): Fields {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return asFields(value)
  } catch {
    // Text that is not JSON is refused after this block, like JSON that is not an object.
  }
  throw new Refusal('malformed', 'The body of the request is not a JSON object')
}

function freshId(prefix: string): string {
  return prefix + randomBytes(12).toString('hex')
}
