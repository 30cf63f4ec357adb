import { ChunkList } from '@sluice/wire/sse/chunk-list'
import { NamedServerClient } from '../../../upstreams/named-server-client.ts'
import { type PostRequest, ServiceFailure } from './service.ts'

/** Maximum size of a service's answer in bytes. */
const MAX_ANSWER_BYTES = 1_048_576
/** `maxMs` is more than the timeouts of guards may be. */
const LIMITS = { connections: 128, maxMs: 600_000 }

/** Limits of time and memory of a request to a guard's service. */
export interface PostLimits {
  /** Aborted at the guard's timeout, and when the answer is no longer needed. */
  readonly signal: AbortSignal
  /** Allocates memory for bytes that have arrived. Throws or rejects if there is none. */
  readonly take: (bytes: number) => void | Promise<void>
}

/** Sends requests to guards' services. */
export class ServiceClient {
  readonly #client = new NamedServerClient(LIMITS)

  /** Resolves to the JSON of the answer. Rejects with `ServiceFailure`, or with an error of `take`. */
  async post({ url, headers: more, body }: PostRequest, { signal, take }: PostLimits): Promise<unknown> {
    const headers = { 'content-type': 'application/json', accept: 'application/json', ...more }
    const response = await this.#client
      .request('POST', url, headers, body, signal)
      .catch((error: unknown) => {
        throw unreachable(error)
      })
    const { statusCode, body: answer } = response
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
  close(): Promise<void> {
    return this.#client.close()
  }
}

async function collected(body: AsyncIterable<Buffer>, take: PostLimits['take']): Promise<Buffer> {
  const chunks = new ChunkList()
  const chunksOf = body[Symbol.asyncIterator]()
  for (;;) {
    const next = await chunksOf.next().catch((error: unknown) => {
      throw unreachable(error)
    })
    if (next.done) return chunks.take()
    if (chunks.length + next.value.length > MAX_ANSWER_BYTES) throw tooLarge()
    await take(next.value.length)
    chunks.add(next.value)
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
