import type { Agent } from 'undici'
import { packageVersion } from '../../../domain/version.ts'
import { lookupBlockingMetadata } from '../../../upstreams/lookup-blocking-metadata.ts'
import { ServiceFailure } from './service.ts'

/** Maximum size of a service's answer in bytes. */
const MAX_ANSWER_BYTES = 1_048_576
/** Maximum number of connections to one service. Further requests wait, within their timeout. */
const CONNECTIONS = 128
/**
 * Timeouts of the HTTP client, in milliseconds. They only limit what a guard's own, shorter timeout does not
 * cover.
 */
const MAX_MS = 600_000

/** A POST request to a guard's service. */
export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Limits of time and memory of a request to a guard's service. */
export interface PostLimits {
  /** Aborted at the guard's timeout, and when the answer is no longer needed. */
  readonly signal: AbortSignal
  /** Allocates memory for bytes that have arrived. Throws or rejects if there is none. */
  readonly take: (bytes: number) => void | Promise<void>
}

/**
 * Sends requests to guards' services. Private addresses are allowed, because the configuration names them.
 * Redirects are not followed, because they could lead to any address.
 */
export class ServiceClient {
  #agent: Agent | undefined

  /** Resolves to the JSON of the answer. Rejects with `ServiceFailure`, and with whatever `take` rejects with. */
  async post({ url, headers, body }: PostRequest, { signal, take }: PostLimits): Promise<unknown> {
    // Loaded with the first request, so that gateways without services start faster.
    const { Agent, request } = await import('undici')
    this.#agent ??= new Agent(AGENT_OPTIONS)
    const response = await request(url, {
      method: 'POST',
      dispatcher: this.#agent,
      signal,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': `sluice/${packageVersion()}`,
        ...headers,
      },
      body,
    }).catch((error: unknown) => {
      throw unreachable(error)
    })
    const { statusCode, body: answer } = response
    // `destroy` at the end makes the body emit an error, which can be ignored.
    answer.on('error', () => {})
    try {
      if (statusCode !== 200) throw new ServiceFailure(`it answered with status ${statusCode}`)
      if (Number(response.headers['content-length'] ?? 0) > MAX_ANSWER_BYTES) throw tooLarge()
      return parsed(await collected(answer, take))
    } finally {
      // A body that is not read to its end would keep its connection open.
      answer.destroy()
    }
  }

  /** Ends all running requests. */
  async close(): Promise<void> {
    await this.#agent?.destroy()
  }
}

const AGENT_OPTIONS: Agent.Options = {
  allowH2: false,
  connections: CONNECTIONS,
  maxHeaderSize: 16_384,
  headersTimeout: MAX_MS,
  bodyTimeout: MAX_MS,
  connect: { timeout: MAX_MS, lookup: lookupBlockingMetadata },
}

async function collected(body: AsyncIterable<Buffer>, take: PostLimits['take']): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  const chunksOf = body[Symbol.asyncIterator]()
  for (;;) {
    const next = await chunksOf.next().catch((error: unknown) => {
      throw unreachable(error)
    })
    if (next.done) return Buffer.concat(chunks, length)
    length += next.value.length
    if (length > MAX_ANSWER_BYTES) throw tooLarge()
    await take(next.value.length)
    chunks.push(next.value)
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw new ServiceFailure('it answered with something else than JSON')
  }
}

function tooLarge(): ServiceFailure {
  return new ServiceFailure(`its answer is larger than ${MAX_ANSWER_BYTES} bytes`)
}

// Error messages may contain URLs with keys, or bytes of the answer, so only the error's code is included.
function unreachable(error: unknown): ServiceFailure {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return new ServiceFailure(`it cannot be reached${typeof code === 'string' ? ` (${code})` : ''}`, {
    cause: error,
  })
}
