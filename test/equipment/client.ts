import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** The parts of a response's JSON that tests read: a completion or an error. */
export interface ResponseBody {
  readonly id: string
  readonly model: string
  readonly choices: {
    readonly message: { readonly content: string | null }
    readonly finish_reason: string
  }[]
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number }
  readonly error: { readonly message: string; readonly type: string; readonly code: unknown }
}

/** A whole response as received. */
export interface FullResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  /** The body as JSON. */
  json(): ResponseBody
}

/** Options of a request besides its body. */
export interface CallOptions {
  readonly method?: string
  readonly path?: string
  /** A key, sent as `Authorization: Bearer sk-…`. */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly agent?: Agent
  /** The address to connect to, where it differs from the URL's. */
  readonly host?: string
}

/** A JSON value, or the bytes to send. */
export type Body = string | Buffer | object | undefined

/** A response that is still being read. */
export interface LiveResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Everything received so far. */
  text(): string
  /** Settles once the text so far contains this; fails if the response ends without it. */
  until(text: string): Promise<void>
  /** Settles with the whole response; `broken` if the connection ended before the body did. */
  end(): Promise<FullResponse & { readonly broken: boolean }>
  /** Hangs up. */
  abort(): void
}

/** Sends a request and reads the whole response. Fails if the connection breaks before its end. */
export async function call(url: string, body: Body, options: CallOptions = {}): Promise<FullResponse> {
  const answer = await (await open(url, body, options)).end()
  if (answer.broken) throw new Error('the answer broke off')
  return answer
}

/**
 * Milliseconds after which a client that closes its side counts as gone. Earlier, it may only have closed its
 * sending side: `docs/api.md: Errors`.
 */
export const CERTAINLY_GONE_MS = 110

/**
 * Sends a request and reads the response. Of an endless response it reads what arrives with the headers, and
 * then hangs up.
 */
export async function callEndless(url: string, body: Body, options: CallOptions = {}): Promise<FullResponse> {
  const answer = await open(url, body, options)
  if (answer.status === 200) {
    await sleep(CERTAINLY_GONE_MS)
    answer.abort()
  }
  return answer.end()
}

/**
 * Repeats a call while the gateway sheds load: on a busy machine it refuses a share of all calls before
 * looking at them.
 */
export async function retryWhileShed<Told extends { readonly text: string }>(
  asking: () => Promise<Told>,
): Promise<Told> {
  for (;;) {
    const answer = await asking()
    if (!answer.text.includes('more calls arrive than can be served')) return answer
  }
}

/** Sends a request and settles with the headers of the response. */
export function open(url: string, body: Body, options: CallOptions = {}): Promise<LiveResponse> {
  return new Promise((resolve, reject) => {
    const sent = send(url, body, options)
    sent.on('error', reject)
    sent.on('response', (reply) => resolve(follow(sent, reply)))
  })
}

/** Sends a request and ignores the response; errors are swallowed, `destroy()` hangs up. */
export function send(url: string, body: Body, options: CallOptions = {}): ClientRequest {
  const bytes =
    body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const { hostname, port } = new URL(url)
  const headers: Record<string, string> = {
    ...(bytes === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(bytes)) }),
    ...(options.key === undefined ? {} : { authorization: `Bearer sk-${options.key}` }),
    ...options.headers,
  }
  const sent = request({
    host: options.host ?? hostname,
    port,
    method: options.method ?? 'POST',
    path: options.path ?? '/v1/chat/completions',
    headers,
    agent: options.agent ?? false,
  })
  sent.on('error', () => {})
  sent.end(bytes)
  return sent
}

function follow(sent: ClientRequest, reply: IncomingMessage): LiveResponse {
  const chunks: Buffer[] = []
  const watchers = new Set<() => void>()
  const text = (): string => Buffer.concat(chunks).toString()
  const notify = (): void => {
    for (const watcher of watchers) watcher()
  }
  let over = false
  reply.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    notify()
  })
  reply.on('error', () => {})
  const end = new Promise<FullResponse & { broken: boolean }>((resolve) => {
    reply.on('close', () => {
      over = true
      notify()
      const bytes = Buffer.concat(chunks)
      resolve({
        status: reply.statusCode ?? 0,
        headers: reply.headers,
        bytes,
        text: bytes.toString(),
        json: () => JSON.parse(bytes.toString()),
        broken: !reply.complete,
      })
    })
  })
  return {
    status: reply.statusCode ?? 0,
    headers: reply.headers,
    text,
    until: (wanted) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (text().includes(wanted)) resolve()
          else if (over) reject(new Error(`the answer ended without ${wanted}: ${text()}`))
          else return
          watchers.delete(look)
        }
        watchers.add(look)
        look()
      }),
    end: () => end,
    abort: () => sent.destroy(),
  }
}

/** The `data:` values of a stream, in order. */
export function events(text: string): string[] {
  return text
    .split('\n\n')
    .filter((block) => block.startsWith('data:'))
    .map((block) => block.slice('data:'.length).trim())
}

/** The concatenated content of a stream's chunks. */
export function streamedContent(text: string): string {
  return events(text)
    .filter((data) => data.startsWith('{'))
    .map((data) => JSON.parse(data).choices?.[0]?.delta?.content ?? '')
    .join('')
}
