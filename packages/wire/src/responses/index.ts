/** Public interface of the responses dialect. */
export { responsesCodec } from './codec.ts'
export { maxTokensOf } from './encode/request.ts'
export { encryptedInput } from './encrypted-content.ts'
export { gateResponsesRequest } from './native/gate.ts'
export { inputItems } from './native/items.ts'
export {
  hasForeignThoughts,
  inputForProvider,
  itemReferences,
  withItems,
  referredIds,
} from './item-references.ts'
export { hasOnlyMessages } from './plain-input.ts'
export { type ItemQuery, itemQuery } from './item-page.ts'
export { type ItemSpan, ItemSpans } from './native/item-spans.ts'
export { RESPONSES_PROMPT } from './prompt-levels.ts'
export { RenamedIds } from './native/renamed-ids.ts'
export { type ResponseFacts, usageOfCompaction, usageOfResponse } from './reply.ts'
export { readResponsesRequest, type ResponsesRequest, responsesRequestSchema } from './native/request.ts'
export { countableText, countedModel, readCompactionRequest } from './side-requests.ts'
export { ResponsesTap } from './native/tap.ts'
export { responsesNames } from './names.ts'
