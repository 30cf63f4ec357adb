import type { Dropped } from '../../../protocols/codec.ts'
import type { TextsToEmbed, VectorsWriting } from '../../../protocols/texts-to-embed.ts'
import type { Prepared } from '../dialect.ts'
import { unstreamed } from '../no-streams.ts'
import { vectorsResponses } from './converted-passthrough.ts'
import type { EmbedUpstream } from '../../../upstreams/embed-upstream.ts'

/** A request for vectors, sent as one or more requests in succession, depending on the texts. */
export function askedForVectors(
  { form, protocol, path, model }: EmbedUpstream,
  texts: TextsToEmbed,
  dropped: Dropped,
  writer: () => VectorsWriting,
): Prepared {
  const requests = form.requests(texts, model, dropped)
  return {
    protocol,
    path,
    headers: [],
    body: requests[0].body,
    prompt: () => requests.flatMap((request) => request.texts).join('\n'),
    upstreamModel: model,
    dropped: [...dropped],
    passed: vectorsResponses(form, requests, writer),
    tap: unstreamed,
    reply: unstreamed,
  }
}
