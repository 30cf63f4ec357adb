import { countableText, countedModel } from '../../../protocols/responses/index.ts'
import type { Counting } from '../counting.ts'

/** `POST /v1/responses/input_tokens`. */
export const responsesCounting: Counting = {
  protocol: 'responses',
  path: '/responses/input_tokens',
  model: countedModel,
  upstreamHeaders: () => [],
  countable: countableText,
  response: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
}
