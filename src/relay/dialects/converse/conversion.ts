import { CONVERSE_PROMPT, converseCodec, maxTokensOf } from '@sluice/wire/converse'
import type { UpstreamDialect } from '../conversion-dialect.ts'

/** Bedrock's Converse API, to which other dialects are converted. */
export const converseConversion: UpstreamDialect = {
  codec: converseCodec,
  prompt: CONVERSE_PROMPT,
  path: (_model, stream) => (stream ? '/converse-stream' : '/converse'),
  headers: [],
  // Model names of some vendors end like this suffix.
  hasThinkingField: false,
  // Depends on the model; the codec leaves the marks out if the model does not accept them.
  takesCacheMarks: () => true,
  search: () => undefined,
  outputMaximum: maxTokensOf,
}
