import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { Agent } from 'undici'
import { request } from 'undici'
import { GatewayError } from '../errors.ts'
import { ForbiddenAddress } from './ssrf-guard.ts'
import { MediaUnavailable } from './media-unavailable.ts'
import { untilAborted } from './until-aborted.ts'

/** A media file that was fetched from a URL. */
export interface FetchedMedia {
  readonly bytes: Buffer
  /** The media type that the server stated, without parameters; empty if it stated none. */
  readonly mediaType: string
}

const MAX_REDIRECTS = 3
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Limits for fetching a file. */
interface FetchBounds {
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** Reserves memory for bytes that have arrived. Throws an error for the client if there is too little. */
  readonly take: (bytes: number) => void
}

/**
 * Fetches a media file from a URL that a client gave. Throws `MediaUnavailable` if that fails, or the error
 * that `bounds.take` throws.
 */
export async function fetchMedia(url: string, agent: Agent, bounds: FetchBounds): Promise<FetchedMedia> {
  let target = checkedUrl(url)
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    const response = await get(target, agent, bounds.signal)
    const { statusCode, headers, body } = response
    // Destroying the body in the `finally` block emits an error, which would end the process without a
    // listener.
    body.on('error', () => {})
    try {
      if (REDIRECTS.has(statusCode) && typeof headers['location'] === 'string') {
        target = checkedUrl(URL.parse(headers['location'], target.href)?.href ?? '')
        continue
      }
      if (statusCode !== 200) throw new MediaUnavailable(`its server responded ${statusCode}`)
      return { bytes: await collected(body, headers, bounds), mediaType: typeOf(headers) }
    } finally {
      // The body may not have been read to its end; it would then keep the connection open.
      body.destroy()
    }
  }
  throw new MediaUnavailable(`it redirects more than ${MAX_REDIRECTS} times`)
}

function checkedUrl(text: string): URL {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new MediaUnavailable('an http:// or https:// URL is expected')
  }
  if (url.username !== '' || url.password !== '')
    throw new MediaUnavailable('a URL without a user is expected')
  return url
}

async function get(url: URL, agent: Agent, signal: AbortSignal): ReturnType<typeof request> {
  try {
    const getting = request(url, { dispatcher: agent, signal, headers: { 'accept-encoding': 'identity' } })
    // The client itself looks at the signal only once the request has its connection.
    return await untilAborted(getting, signal)
  } catch (error) {
    if (error instanceof ForbiddenAddress) throw new MediaUnavailable(error.message, { cause: error })
    throw unreachable(error)
  }
}

async function collected(
  body: AsyncIterable<Buffer>,
  headers: Record<string, string | string[] | undefined>,
  { maxBytes, take }: FetchBounds,
): Promise<Buffer> {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const chunks = new ChunkList()
  try {
    for await (const chunk of body) {
      if (chunks.length + chunk.length > maxBytes) throw tooLarge(maxBytes)
      take(chunk.length)
      chunks.add(chunk)
    }
  } catch (error) {
    throw error instanceof MediaUnavailable || error instanceof GatewayError ? error : unreachable(error)
  }
  return chunks.take()
}

function typeOf(headers: Record<string, string | string[] | undefined>): string {
  return String(headers['content-type'] ?? '')
    .split(';', 1)
    .join('')
    .trim()
    .toLowerCase()
}

function tooLarge(maxBytes: number): MediaUnavailable {
  return new MediaUnavailable(`it is larger than ${maxBytes} bytes`)
}

function unreachable(cause: unknown): MediaUnavailable {
  const timedOut = cause instanceof Error && cause.name === 'TimeoutError'
  return new MediaUnavailable(timedOut ? 'its server took too long' : 'its server cannot be reached', {
    cause,
  })
}
