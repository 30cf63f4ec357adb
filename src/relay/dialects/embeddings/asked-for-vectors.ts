import type { Dropped } from '../../../protocols/codec.ts'
import type { TextsToEmbed, VectorsWriting } from '../../../protocols/texts-to-embed.ts'
import type { Prepared } from '../dialect.ts'
import { unstreamed } from '../unstreamed.ts'
import { ConvertedPassage } from './converted-passage.ts'
import type { EmbedUpstream } from './embed-upstream.ts'
import { embeddingsResponses } from './responses.ts'

/** A request for vectors: as many requests, one after the other, as the texts need. */
export function askedForVectors(
  { form, protocol, path, model }: EmbedUpstream,
  texts: TextsToEmbed,
  dropped: Dropped,
  writer: () => VectorsWriting,
): Prepared {
  const [body, ...more] = form.bodies(texts, model, dropped)
  return {
    protocol,
    path,
    headers: [],
    body,
    upstreamModel: model,
    dropped: [...dropped],
    passed: embeddingsResponses(() => new ConvertedPassage(form, writer(), texts.texts.length, more)),
    tap: unstreamed,
    reply: unstreamed,
  }
}
