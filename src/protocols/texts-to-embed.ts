import type { Usage } from '../domain/usage.ts'
import type { Dropped } from './codec.ts'
import type { ReplyFacts } from './reply-facts.ts'
import type { RawVector } from './vector-reader.ts'

/** Texts to embed, in a form that the dialects share. */
export interface TextsToEmbed {
  /** At least one text. */
  readonly texts: readonly string[]
  /** Length of the vectors; undefined = the model's own. */
  readonly dimensions: number | undefined
  /** Use that the vectors are for, as Gemini names it; undefined = none in particular. */
  readonly task: string | undefined
}

/** Response of an upstream with vectors, read while it comes. Nothing of it throws. */
export interface VectorsReading {
  /** Number of vectors so far. */
  readonly count: number
  /** The response so far, without its vectors. */
  readonly outline: string
  push(chunk: Buffer): void
  /** Ends the response. Valid is one with vectors; its usage is undefined where the upstream told none. */
  end(): ReplyFacts
}

/** Writes the response for a client, vector by vector. */
export interface VectorsWriting {
  /** The piece with the next vector. */
  write(vector: RawVector): Buffer
  /** The last piece. */
  end(charged: Usage): Buffer
}

/** A request for some of the texts. */
export interface EmbedRequest {
  readonly body: Buffer
  readonly texts: readonly string[]
}

/** Requests, at least one, that are sent one after the other. */
export type EmbedRequests = readonly [first: EmbedRequest, ...more: EmbedRequest[]]

/** A request for each group of texts. */
export function embedRequests(
  [first, ...more]: readonly [readonly string[], ...(readonly string[])[]],
  bodyOf: (texts: readonly string[]) => object,
): EmbedRequests {
  const requestOf = (texts: readonly string[]): EmbedRequest => ({
    body: Buffer.from(JSON.stringify(bodyOf(texts))),
    texts,
  })
  return [requestOf(first), ...more.map(requestOf)]
}

/** Form in which an upstream is asked for vectors, and answers. */
export interface EmbedForm {
  /** Writes as many requests as the texts need. What the upstream has no place for is named. */
  requests(texts: TextsToEmbed, upstreamModel: string, dropped: Dropped): EmbedRequests
  /** Begins the response to one of them; `onVector` gets its vectors in their order. */
  reading(onVector: (vector: RawVector) => void): VectorsReading
}
