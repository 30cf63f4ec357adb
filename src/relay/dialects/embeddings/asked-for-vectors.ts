import { addedUsage, NO_USAGE, type Usage } from '../../../domain/usage.ts'
import type { Dropped } from '../../../protocols/codec.ts'
import type { TextsToEmbed, Vectors } from '../../../protocols/texts-to-embed.ts'
import type { Prepared, PreparedReply } from '../dialect.ts'
import { unstreamed } from '../unstreamed.ts'
import type { EmbedUpstream } from './embed-upstream.ts'

/** Writes the response for the client. */
type Encode = (vectors: Vectors, charged: Usage) => Buffer

/** Vectors that have come, and what is still to be asked. */
interface Collected {
  readonly vectors: Vectors
  /** Undefined where a response told none. */
  readonly usage: Usage | undefined
  readonly more: readonly Buffer[]
}

/** A request for vectors: as many requests, one after the other, as the texts need. */
export function askedForVectors(
  { form, protocol, path, model }: EmbedUpstream,
  texts: TextsToEmbed,
  dropped: Dropped,
  encode: Encode,
): Prepared {
  const [body, ...more] = form.bodies(texts, model, dropped)
  const read = (bytes: Buffer, before: Collected): PreparedReply => {
    const came = form.read(bytes)
    const vectors = [...before.vectors, ...came.vectors]
    const usage = before.usage && came.usage && addedUsage(before.usage, came.usage)
    const [next, ...rest] = before.more
    const isWhole = next !== undefined || vectors.length === texts.texts.length
    return {
      facts: { ...came.facts, valid: came.facts.valid && isWhole, usage },
      body: (charged) => encode(vectors, charged),
      ...(next && { next: { body: next, reply: (then) => read(then, { vectors, usage, more: rest }) } }),
    }
  }
  return {
    protocol,
    path,
    headers: [],
    body,
    upstreamModel: model,
    dropped: [...dropped],
    tap: unstreamed,
    reply: (bytes) => read(bytes, { vectors: [], usage: NO_USAGE, more }),
  }
}
