import type { Dropped } from '../../../protocols/codec.ts'
import type { VectorsWriter } from '../../../protocols/embeddings/index.ts'
import { encodeEmbedRequests } from '../../../protocols/gemini/embed/index.ts'
import { methodPath } from '../../../protocols/gemini/index.ts'
import type { TextsToEmbed } from '../../../protocols/texts-to-embed.ts'
import type { Prepared } from '../dialect.ts'
import { unstreamed } from '../unstreamed.ts'
import { ConvertedPassage } from './converted-passage.ts'
import { embeddingsResponses } from './responses.ts'

/** A request to a channel of Gemini for vectors: as many requests, one after the other, as the texts need. */
export function askedOfGemini(
  texts: TextsToEmbed,
  upstreamModel: string,
  dropped: Dropped,
  writer: () => VectorsWriter,
): Prepared {
  const [body, ...more] = encodeEmbedRequests(texts, upstreamModel)
  return {
    protocol: 'gemini',
    path: methodPath(upstreamModel, 'batchEmbedContents'),
    headers: [],
    body,
    upstreamModel,
    dropped: [...dropped],
    passed: embeddingsResponses(() => new ConvertedPassage(writer(), texts.texts.length, more)),
    tap: unstreamed,
    reply: unstreamed,
  }
}
