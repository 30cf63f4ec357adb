import type { Usage } from './usage.ts'
import type { DroppedFields } from './codec.ts'
import type { ReplyFacts } from './reply-facts.ts'
import type { RawVector } from './vectors.ts'

/** Texts to embed, independent of the protocol. */
export interface TextsToEmbed {
  /** At least one text. */
  readonly texts: readonly string[]
  /** Length of the vectors; undefined means the model's default. */
  readonly dimensions: number | undefined
  /** Purpose of the vectors, as Gemini names it; undefined if none is given. */
  readonly task: string | undefined
}

/** Reads an upstream's response with vectors while it streams. Never throws. */
export interface VectorResponseReader {
  /** Number of vectors read so far. */
  readonly count: number
  /** The response read so far, without its vectors. */
  readonly outline: string
  push(chunk: Buffer): void
  /**
   * Ends the response. It is valid if it contains vectors. Its usage is undefined if the upstream did not
   * report it.
   */
  end(): ReplyFacts
}

/** Writes a response for the client, one vector at a time. */
export interface VectorResponseWriter {
  /** Returns the next bytes of the response, which contain this vector. */
  write(vector: RawVector): Buffer
  /** Returns the last bytes of the response. */
  end(charged: Usage): Buffer
}

/** A request to the upstream: its body, and the texts whose vectors it requests. */
export interface UpstreamEmbedRequest {
  readonly body: Buffer
  readonly texts: readonly string[]
}

/** One or more requests, which are sent one after another. */
export type EmbedRequests = readonly [first: UpstreamEmbedRequest, ...more: UpstreamEmbedRequest[]]

/** Creates one request for each list of texts. */
export function embedRequests(
  [first, ...more]: readonly [readonly string[], ...(readonly string[])[]],
  bodyOf: (texts: readonly string[]) => object,
): EmbedRequests {
  const requestOf = (texts: readonly string[]): UpstreamEmbedRequest => ({
    body: Buffer.from(JSON.stringify(bodyOf(texts))),
    texts,
  })
  return [requestOf(first), ...more.map(requestOf)]
}

/** How texts are sent to an upstream to get vectors, and how its responses are read. */
export interface EmbeddingsApi {
  /**
   * Creates as many requests as the upstream needs for the texts. Names of settings that it does not support
   * are added to `dropped`.
   */
  requests(texts: TextsToEmbed, upstreamModel: string, dropped: DroppedFields): EmbedRequests
  /** Creates the reader of one response; `onVector` receives its vectors in order. */
  reading(onVector: (vector: RawVector) => void): VectorResponseReader
}

/**
 * Divides texts into lists for separate requests, in order. A list has at most the given number of texts and
 * of bytes; a single larger text is a list of its own. Returns at least one list, with at least one text.
 */
export function splitTexts(
  texts: readonly string[],
  maxTexts: number,
  maxBytes = Number.POSITIVE_INFINITY,
): readonly [first: readonly string[], ...more: (readonly string[])[]] {
  const groups: [string[], ...string[][]] = [[]]
  let group = groups[0]
  let bytes = 0
  for (const text of texts) {
    const size = Buffer.byteLength(text)
    if (group.length > 0 && (group.length === maxTexts || bytes + size > maxBytes)) {
      groups.push((group = []))
      bytes = 0
    }
    group.push(text)
    bytes += size
  }
  return groups
}
