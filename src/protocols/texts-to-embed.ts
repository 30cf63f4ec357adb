import type { Usage } from '../domain/usage.ts'
import type { Dropped } from './codec.ts'
import type { ReplyFacts } from './reply-facts.ts'

/** Texts to embed, in a form that the dialects share. */
export interface TextsToEmbed {
  /** At least one text. */
  readonly texts: readonly string[]
  /** Length of the vectors; undefined = the model's own. */
  readonly dimensions: number | undefined
  /** Use that the vectors are for, as Gemini names it; undefined = none in particular. */
  readonly task: string | undefined
}

/** Vectors of texts in their order, each the JSON text of a list of numbers. */
export type Vectors = readonly string[]

/** Response of an upstream, and its vectors. */
export interface VectorsReply {
  readonly facts: ReplyFacts
  /** Undefined where the upstream told none. */
  readonly usage: Usage | undefined
  readonly vectors: Vectors
}

/** Bodies of requests, at least one, that are sent one after the other. */
export type EmbedBodies = readonly [first: Buffer, ...more: Buffer[]]

/** Form in which an upstream is asked for vectors, and answers. */
export interface EmbedForm {
  /** Writes as many requests as the texts need. What the upstream has no place for is named. */
  bodies(texts: TextsToEmbed, upstreamModel: string, dropped: Dropped): EmbedBodies
  /** Reads the response to one of them; never throws. */
  read(bytes: Buffer): VectorsReply
}

/** Facts of a response that is none of its form. */
export function noVectors(error: boolean): VectorsReply {
  return { facts: { valid: false, error, usage: undefined, text: () => '' }, usage: undefined, vectors: [] }
}

/** Response with these vectors. */
export function vectorsReply(vectors: Vectors, usage: Usage | undefined): VectorsReply {
  return { facts: { valid: true, error: false, usage, text: () => '' }, usage, vectors }
}
