import type { TextsToEmbed } from '../../texts-to-embed.ts'
import { resourceName } from '../method-path.ts'

/** Most texts that upstreams take in one request. */
const MAX_TEXTS = 100

/** Writes texts as bodies of `batchEmbedContents`, as many as are needed: upstreams take 100 texts in one. */
export function encodeEmbedRequests(
  { texts, dimensions, task }: TextsToEmbed,
  upstreamModel: string,
): readonly [first: Buffer, ...more: Buffer[]] {
  const model = resourceName(upstreamModel)
  const bodyOf = (from: number): Buffer =>
    Buffer.from(
      JSON.stringify({
        requests: texts.slice(from, from + MAX_TEXTS).map((text) => ({
          model,
          content: { parts: [{ text }] },
          taskType: task,
          outputDimensionality: dimensions,
        })),
      }),
    )
  const more: Buffer[] = []
  for (let from = MAX_TEXTS; from < texts.length; from += MAX_TEXTS) more.push(bodyOf(from))
  return [bodyOf(0), ...more]
}
