import type { Codec } from '../codec.ts'
import { decodeReply } from './decode/reply.ts'
import { decodeRequest } from './decode/request.ts'
import { encodeRequest, mustFetchMedia } from './encode/request.ts'
import { encodeReply } from './encode/reply.ts'
import { ResponsesStreamDecoder } from './stream/decoder.ts'
import { ResponsesStreamEncoder } from './stream/encoder.ts'

/** Exports of the responses protocol. */
export { responsesAnswerForms } from './answer-forms.ts'
export { maxTokensOf } from './encode/request.ts'
export {
  encryptedInput,
  type ResponseFacts,
  ResponsesTap,
  usageOfCompaction,
  usageOfResponse,
} from './native/tap.ts'
export { adaptResponsesRequest } from './native/adapt-request.ts'
export {
  gatewayItemId,
  hasThoughtsOfOtherDialects,
  hasOnlyMessages,
  inputForProvider,
  inputItems,
  isGatewayItemId,
  itemReferences,
  referredIds,
  replaceItemReferences,
} from './native/items.ts'
export { type ItemPageQuery, readItemQuery, type ItemSpan, ItemSpanFinder } from './native/item-spans.ts'
export { RESPONSES_COMPARISON_RULES, RESPONSES_PROMPT_RULES } from './native/prompt.ts'
export { ItemPlaces } from './item-places.ts'
export { functionItems, mcpCallAsFunction, mcpFunctionName } from './mcp-items.ts'
export { IdReplacer } from './native/id-replacer.ts'
export {
  textToCount,
  countedModel,
  readCompactionRequest,
  readResponsesRequest,
  responsesFieldNames,
  type ResponsesRequest,
  responsesRequestSchema,
} from './native/request.ts'
export { RESPONSES_REQUEST } from './shape.ts'

/** Codec of the responses protocol. */
export const responsesCodec: Codec = {
  decodeRequest,
  mustFetch: mustFetchMedia,
  encodeRequest,
  answerTool: () => undefined,
  decodeReply,
  encodeReply,
  streamDecoder: (memory) => new ResponsesStreamDecoder(memory),
  streamEncoder: (identity, options) => new ResponsesStreamEncoder(identity, options),
}
