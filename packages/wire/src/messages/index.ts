import type { Codec } from '../codec.ts'
import { decodeReply } from './decode/reply.ts'
import { decodeRequest } from './decode/request.ts'
import { encodeReply } from './encode/reply.ts'
import { encodeRequest } from './encode/request.ts'
import { answerTool } from './output-format.ts'
import { MessagesStreamDecoder } from './stream/decoder.ts'
import { MessagesStreamEncoder } from './stream/encoder.ts'

/** Exports of the messages protocol. */
export { messagesAnswerForms } from './answer-forms.ts'
export {
  countedModel,
  countRequestSchema,
  messagesFieldNames,
  messagesRequestSchema,
  readMessagesRequest,
} from './native/request.ts'
export { messagesErrorBody, forwardableError as passedOnError } from './errors.ts'
export { adaptMessagesRequest } from './native/adapt-request.ts'
export { MESSAGES_COMPARISON_RULES, MESSAGES_PROMPT_RULES } from './native/prompt.ts'
export { MessagesTap, usageOfMessage } from './native/tap.ts'
export { PING_FRAME } from './stream/encoder.ts'
export { maxTokensOf, withoutThinkingSuffix, withSuffixThinking } from './encode/thinking.ts'
export { MESSAGES_REQUEST } from './shape.ts'

/** Codec of the messages protocol. */
export const messagesCodec: Codec = {
  decodeRequest,
  // Media given as a URL are downloaded and sent as data; `docs/api.md: Chat completions`, translations.
  mustFetch: ({ source }) => source.kind === 'url',
  encodeRequest,
  answerTool,
  decodeReply,
  encodeReply,
  streamDecoder: (memory) => new MessagesStreamDecoder(memory),
  streamEncoder: (minted) => new MessagesStreamEncoder(minted),
}
